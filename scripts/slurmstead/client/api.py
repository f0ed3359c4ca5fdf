"""The cluster from Python: what a notebook or a service drives it with."""

import contextlib
import os
import pathlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slurmstead.client import head as heads
from slurmstead.client import results, settings, submitting
from slurmstead.client.connection import Connection
from slurmstead.client.files import RESULTS
from slurmstead.client.records import Event, Job, Result, State
from slurmstead.client.submitting import Observer, Silent, Word
from slurmstead.errors import JobFailed, SteadError, TaskError, UnreachableError, UsageError

POLL_SECONDS = 2.0

RETURN_SECONDS = 300
"""After the head node was away, within which its share may still be missing."""

Run = Job | State | str | int
"""A run, by what was returned for it, its id or the beginning of one, or the number of its job."""


class Client:
    """The runs of a user on a cluster.

    >>> client = Client("alice@node3")                                            # doctest: +SKIP
    >>> job = client.map("pi", [["1"], ["2"], ["3"]], entry="main.py", cpus=2)    # doctest: +SKIP
    >>> [result.stdout for result in client.results(job)]                         # doctest: +SKIP
    ['3.14\\n', '3.15\\n', '3.13\\n']

    :param head: `[user@]host` of the head node; unless given, what the environment or the user's file says
    :param ssh_config: a configuration for ssh other than the user's
    :param directory: where runs stand on the cluster, ~/slurmstead unless given
    :raises UsageError: nobody says which head node is meant
    """

    def __init__(
        self,
        head: str | None = None,
        *,
        ssh_config: str | None = None,
        directory: str | None = None,
        observer: Observer | None = None,
    ) -> None:
        given = {"head": head, "ssh_config": ssh_config, "directory": directory}
        self.head = heads.choose(given, {})
        self._observer = observer or Silent()

    def submit(
        self,
        project: str | os.PathLike[str],
        args: Word | Iterable[Word] = (),
        *,
        id: str | None = None,
        **options: Any,
    ) -> Job:
        """Submit a folder and return its run at once.

        :param args: what the program is called with
        :param id: a name for the run that the caller chose: calls with the same id are one run, however often they are
            repeated, by whom, and wherever they were cut off
        :param options: the fields of `settings.Settings`; they win over the folder's stead.toml;
            `after` takes runs too
        :raises UnreachableError: the cluster did not answer; the same call carries on
        :raises SteadError: it cannot be done, and nothing was submitted
        """
        chosen = asked(project, args, options)
        return submitting.submit(self.head, submitting.order_of(project, chosen, None, id), self._observer)

    def map(
        self,
        project: str | os.PathLike[str],
        items: Iterable[Word | Iterable[Word]],
        args: Word | Iterable[Word] = (),
        *,
        id: str | None = None,
        **options: Any,
    ) -> Job:
        """Submit a folder as a run with a task for each item: the program is called with `args`, then the item.

        As many jobs of Slurm are made as its MaxArraySize asks for. `results` returns what came of it in the order of
        the items. The other parameters and errors are those of `submit`.
        """
        chosen = asked(project, args, options)
        return submitting.submit(self.head, submitting.order_of(project, chosen, list(items), id), self._observer)

    def jobs(self, *, latest: int | None = None) -> list[State]:
        """Return how the runs stand, the oldest first; only the latest if a number is given."""
        with Connection(self.head) as connection:
            return [State.read(summary) for summary in connection.ask("jobs", latest=latest)["jobs"]]

    def state(self, run: Run) -> State:
        """Return how a run stands."""
        with Connection(self.head) as connection:
            return look(connection, name_of(run))

    def wait(self, run: Run, timeout: float | None = None) -> State:
        """Return how a run stands when it has ended; a head node that is away for a while is waited for.

        :param timeout: seconds
        :raises TimeoutError: it has not ended by then
        """
        for state in self._states(name_of(run), timeout):
            if state.ended:
                return state
        raise TimeoutError(f"{name_of(run)} has not ended within {timeout} s")

    def events(self, run: Run, timeout: float | None = None) -> Iterator[Event]:
        """Yield each change of a task's state, first those that it has now, until the run has ended.

        :param timeout: seconds
        :raises TimeoutError: it has not ended by then
        """
        known: dict[int, str] = {}
        for state in self._states(name_of(run), timeout):
            yield from changes(known, state)
            if state.ended:
                return
        raise TimeoutError(f"{name_of(run)} has not ended within {timeout} s")

    def results(self, run: Run, to: str | os.PathLike[str] = RESULTS, timeout: float | None = None) -> list[Result]:
        """Wait for a run, fetch what it left, and return it by task, in their order.

        :param to: the directory in which one of the run's name is made
        :raises JobFailed: a task failed; its text ends with the tail of that task's standard error
        """
        state = self.wait(run, timeout)
        with Connection(self.head) as connection:
            check(connection, state)
            return results.read(results.fetch(connection, state.id, pathlib.Path(to), self._observer))

    def result(self, run: Run, to: str | os.PathLike[str] = RESULTS, timeout: float | None = None) -> Result:
        """Return the result of a run that is no array, or of an array's first task; as `results`."""
        return self.results(run, to, timeout)[0]

    def fetch(self, run: Run, to: str | os.PathLike[str] = RESULTS) -> pathlib.Path:
        """Fetch what the ended tasks of a run left, failed ones too, and return the directory."""
        with Connection(self.head) as connection:
            return results.fetch(connection, name_of(run), pathlib.Path(to), self._observer).directory

    def cancel(self, *runs: Run) -> list[str]:
        """End runs, and return the ids of those that had not ended by themselves."""
        with Connection(self.head) as connection:
            return list(connection.ask("cancel", jobs=[name_of(run) for run in runs])["cancelled"])

    def rerun(self, run: Run, *, id: str | None = None) -> Job:
        """Submit what a run was made of once more, as a run of its own; `id` and errors are those of `submit`."""
        return submitting.rerun(self.head, name_of(run), id, self._observer)

    def _states(self, run: str, timeout: float | None) -> Iterator[State]:
        return states(self.head, run, timeout, self._observer)


def asked(
    project: str | os.PathLike[str], args: Word | Iterable[Word], options: Mapping[str, Any]
) -> settings.Settings:
    """Return what a call and the folder's stead.toml say of a run.

    :raises UsageError: it cannot be meant
    """
    file, _ = settings.read(pathlib.Path(project))
    given = {**options, "args": submitting.words(args)}
    if after := options.get("after"):
        given["after"] = [name_of(run) for run in ([after] if isinstance(after, Run) else after)]
    return settings.merge(file, given)


def name_of(run: Run) -> str:
    """Return a run as the head node is asked for it."""
    return run.id if isinstance(run, Job | State) else str(run)


def look(connection: Connection, run: str) -> State:
    """Return how a run stands."""
    return State.read(connection.ask("jobs", jobs=[run])["jobs"][0])


def states(
    head: heads.Head, run: str, timeout: float | None, observer: Observer, opened: Connection | None = None
) -> Iterator[State]:
    """Yield how a run stands again and again until `timeout` seconds are over.

    :param opened: a connection that is used as long as it holds
    :raises UnreachableError: the cluster did not answer the first time; later it is waited for
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    patience = Patience()
    while True:
        way = contextlib.nullcontext(opened) if opened else Connection(head, observer.note)
        opened = None
        try:
            with way as connection:
                while True:
                    asked = time.monotonic()
                    state = look(connection, run)
                    # A head node that is busy is asked less often.
                    pause = max(POLL_SECONDS, 2 * (time.monotonic() - asked))
                    patience.answered()
                    yield state
                    if not _pause(deadline, pause):
                        return
        except (UnreachableError, UsageError, TaskError) as error:
            if not patience.lasts(error):
                raise
            observer.note(f"{error}; trying again")
        if not _pause(deadline, 5 * POLL_SECONDS):
            return


class Patience:
    """Whether to ask again after an error: the cluster answered before, or is on its way back."""

    def __init__(self) -> None:
        self._has_answered = False
        self._until = 0.0

    def answered(self) -> None:
        """Take note of an answer."""
        self._has_answered, self._until = True, 0.0

    def lasts(self, error: SteadError) -> bool:
        """Whether what failed with an error is to be tried again."""
        if self._has_answered and isinstance(error, UnreachableError):
            self._until = time.monotonic() + RETURN_SECONDS
        return time.monotonic() <= self._until


def _pause(deadline: float | None, seconds: float) -> bool:
    """Wait a little, at most until the deadline; False if it is over."""
    if deadline is not None:
        seconds = min(seconds, deadline - time.monotonic())
        if seconds <= 0:
            return False
    time.sleep(seconds)
    return True


def changes(known: dict[int, str], state: State) -> list[Event]:
    """Return what is new in a state, and take note of it in `known`."""
    found = []
    for task in state.tasks:
        before = known.get(task.task)
        if before != task.state:
            known[task.task] = task.state
            found.append(Event(state.id, task.task, task.state, before, task.node, task.exit_code))
    return found


def check(connection: Connection, state: State) -> None:
    """Return if a run that has ended did well.

    :raises JobFailed: it did not; the text ends with the tail of the first bad task's standard error
    """
    if state.state == "completed":
        return
    bad = next(task for task in state.tasks if task.state != "completed")
    tail = ""
    with contextlib.suppress(SteadError):
        tail = connection.ask("tail", job=state.id, task=bad.task if state.array else None)["text"]
    raise JobFailed(failure(state), f"stead logs {state.id} --stderr shows it all; stead rerun {state.id}", state, tail)


def failure(state: State) -> str:
    """Return in a line how a run failed.

    >>> counts = {"failed": 1, "completed": 2}
    >>> failure(State("a", "a", ("7",), "0-2", "failed", counts, 0, 0, 1, (), 3, "", 0, 0, "/", ()))
    'a (job 7): 1 of 3 tasks failed with exit code 3'
    """
    total = sum(state.counts.values())
    bad = total - state.counts.get("completed", 0)
    which = f"{bad} of {total} tasks {state.state}" if state.array else state.state
    code = f" with exit code {state.exit_code}" if state.exit_code and state.state == "failed" else ""
    reason = f" ({state.reason})" if state.reason and state.reason != state.state else ""
    return f"{state.id} (job {', '.join(state.jobs)}): {which}{code}{reason}"
