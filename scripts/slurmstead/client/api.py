"""The cluster from Python, for notebooks and services."""

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
"""Seconds after a reboot of the head node in which its share may still be missing."""

Run = Job | State | str | int
"""A run: the object returned for it, its ID or the beginning of it, or its job number."""


class Client:
    """The runs of a user on a cluster.

    >>> client = Client("alice@node3")                                            # doctest: +SKIP
    >>> job = client.map("pi", [["1"], ["2"], ["3"]], entry="main.py", cpus=2)    # doctest: +SKIP
    >>> [result.stdout for result in client.results(job)]                         # doctest: +SKIP
    ['3.14\\n', '3.15\\n', '3.13\\n']

    :param head: `[user@]host` of the head node; by default from the environment or the user's file
    :param ssh_config: an ssh configuration file instead of the user's
    :param directory: directory for runs on the cluster, by default ~/slurmstead
    :raises UsageError: no head node is configured
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

        :param args: arguments of the program
        :param id: a name for the run, chosen by the caller: all calls with the same ID are one run, even if they were
            interrupted or repeated
        :param options: the fields of `settings.Settings`; they override the folder's stead.toml;
            `after` also accepts runs
        :raises UnreachableError: the cluster did not answer; the same call continues
        :raises SteadError: nothing was submitted
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

        A list longer than Slurm's MaxArraySize becomes several jobs. `results` returns the results in the order of the
        items. The other parameters and errors are those of `submit`.
        """
        chosen = asked(project, args, options)
        return submitting.submit(self.head, submitting.order_of(project, chosen, list(items), id), self._observer)

    def jobs(self, *, latest: int | None = None) -> list[State]:
        """Return the states of the runs, oldest first; with `latest`, only that many of the newest."""
        with Connection(self.head) as connection:
            return [State.read(summary) for summary in connection.ask("jobs", latest=latest)["jobs"]]

    def state(self, run: Run) -> State:
        """Return the state of a run."""
        with Connection(self.head) as connection:
            return look(connection, name_of(run))

    def wait(self, run: Run, timeout: float | None = None) -> State:
        """Wait for the end of a run and return its state; a temporarily unreachable head node is waited for.

        :param timeout: seconds
        :raises TimeoutError: the run has not ended by then
        """
        for state in self._states(name_of(run), timeout):
            if state.ended:
                return state
        raise TimeoutError(f"{name_of(run)} has not ended within {timeout} s")

    def events(self, run: Run, timeout: float | None = None) -> Iterator[Event]:
        """Yield the current state of each task, then each change, until the run has ended.

        :param timeout: seconds
        :raises TimeoutError: the run has not ended by then
        """
        known: dict[int, str] = {}
        for state in self._states(name_of(run), timeout):
            yield from changes(known, state)
            if state.ended:
                return
        raise TimeoutError(f"{name_of(run)} has not ended within {timeout} s")

    def results(self, run: Run, to: str | os.PathLike[str] = RESULTS, timeout: float | None = None) -> list[Result]:
        """Wait for a run, fetch its results, and return one per task, in order.

        :param to: the directory in which the run's own directory is created
        :raises JobFailed: a task failed; its text ends with the tail of that task's standard error
        """
        state = self.wait(run, timeout)
        with Connection(self.head) as connection:
            check(connection, state)
            return results.read(results.fetch(connection, state.id, pathlib.Path(to), self._observer))

    def result(self, run: Run, to: str | os.PathLike[str] = RESULTS, timeout: float | None = None) -> Result:
        """Return the result of a run that is not an array, or of an array's first task; see `results`."""
        return self.results(run, to, timeout)[0]

    def fetch(self, run: Run, to: str | os.PathLike[str] = RESULTS) -> pathlib.Path:
        """Fetch the results of a run's ended tasks, including failed ones, and return the directory.

        :param run: also one task of an array, JOB_TASK
        """
        with Connection(self.head) as connection:
            return results.fetch(connection, name_of(run), pathlib.Path(to), self._observer).directory

    def cancel(self, *runs: Run) -> list[str]:
        """Cancel runs, and return the IDs of those that had not already ended."""
        with Connection(self.head) as connection:
            return list(connection.ask("cancel", jobs=[name_of(run) for run in runs])["cancelled"])

    def rerun(self, run: Run, *, id: str | None = None) -> Job:
        """Submit the files of a run again, as a new run; `id` and errors are those of `submit`."""
        return submitting.rerun(self.head, name_of(run), id, self._observer)

    def _states(self, run: str, timeout: float | None) -> Iterator[State]:
        return states(self.head, run, timeout, self._observer)


def asked(
    project: str | os.PathLike[str], args: Word | Iterable[Word], options: Mapping[str, Any]
) -> settings.Settings:
    """Return the settings of a call merged with the folder's stead.toml.

    :raises UsageError: a setting is invalid
    """
    file, _ = settings.read(pathlib.Path(project))
    given = {**options, "args": submitting.words(args)}
    if after := options.get("after"):
        given["after"] = [name_of(run) for run in ([after] if isinstance(after, Run) else after)]
    return settings.merge(file, given)


def name_of(run: Run) -> str:
    """Return the name by which the head node knows a run."""
    return run.id if isinstance(run, Job | State) else str(run)


def look(connection: Connection, run: str) -> State:
    """Return the state of a run."""
    return State.read(connection.ask("jobs", jobs=[run])["jobs"][0])


def states(
    head: heads.Head, run: str, timeout: float | None, observer: Observer, opened: Connection | None = None
) -> Iterator[State]:
    """Yield the state of a run repeatedly, for at most `timeout` seconds.

    :param opened: a connection to use until it breaks
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
                    # A busy head node is asked less often.
                    pause = max(POLL_SECONDS, 2 * (time.monotonic() - asked))
                    patience.answered()
                    yield state
                    if not _pause(deadline, pause):
                        return
        except (UnreachableError, UsageError, TaskError) as error:
            if not patience.lasts(error):
                raise
            observer.note(f"{error}; retrying")
        if not _pause(deadline, 5 * POLL_SECONDS):
            return


class Patience:
    """Decides whether to retry after an error: yes if the cluster has answered before or has just come back."""

    def __init__(self) -> None:
        self._has_answered = False
        self._until = 0.0

    def answered(self) -> None:
        """Record an answer."""
        self._has_answered, self._until = True, 0.0

    def lasts(self, error: SteadError) -> bool:
        """Return whether to retry after an error."""
        if self._has_answered and isinstance(error, UnreachableError):
            self._until = time.monotonic() + RETURN_SECONDS
        return time.monotonic() <= self._until


def _pause(deadline: float | None, seconds: float) -> bool:
    """Sleep, at most until the deadline; return False if it has passed."""
    if deadline is not None:
        seconds = min(seconds, deadline - time.monotonic())
        if seconds <= 0:
            return False
    time.sleep(seconds)
    return True


def changes(known: dict[int, str], state: State) -> list[Event]:
    """Return what is new in a state, and record it in `known`."""
    found = []
    for task in state.tasks:
        before = known.get(task.task)
        if before != task.state:
            known[task.task] = task.state
            found.append(Event(state.id, task.task, task.state, before, task.node, task.exit_code))
    return found


def check(connection: Connection, state: State) -> None:
    """Return if an ended run succeeded.

    :raises JobFailed: it failed; the text ends with the last lines of the first failed task's standard error
    """
    if state.state == "completed":
        return
    bad = next(task for task in state.tasks if task.state != "completed")
    tail = ""
    with contextlib.suppress(SteadError):
        tail = connection.ask("tail", job=state.id, task=bad.task if state.array else None)["text"]
    raise JobFailed(
        failure(state),
        f"stead logs {state.id} --stderr shows the whole output; stead rerun {state.id} runs it again",
        state,
        tail,
    )


def failure(state: State) -> str:
    """Return one line that says how a run failed.

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
