"""Submits a folder exactly once, even if this computer fails at any moment."""

import contextlib
import dataclasses
import getpass
import os
import pathlib
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from slurmstead.client import environment, files, known, names, pending, transfer
from slurmstead.client.connection import Connection
from slurmstead.client.files import Folder
from slurmstead.client.head import Head
from slurmstead.client.records import ENDLESS, Job
from slurmstead.client.remote import arrays
from slurmstead.client.settings import Settings, refuse_nul
from slurmstead.errors import IncompleteCopy, Interrupted, JobFailed, SteadError, UnreachableError, UsageError

Word = str | bytes | int | float | os.PathLike[str]
"""An argument of a program."""


class Observer(Protocol):
    """Receives the progress of a transfer, and notes for the user."""

    def began(self, what: str, size: int) -> None:
        """A copy of `size` bytes begins."""

    def copied(self, part: float) -> None:
        """The fraction of them that is done, 0 to 1."""

    def note(self, text: str) -> None:
        """A note for the user."""


class Silent:
    """An observer that ignores everything."""

    def began(self, what: str, size: int) -> None:
        """Ignore it."""

    def copied(self, part: float) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""


@dataclasses.dataclass(frozen=True)
class Order:
    """A folder, its settings, the arguments of each task (for a map), and the ID that the caller chose."""

    folder: Folder
    settings: Settings
    items: tuple[tuple[str, ...], ...] | None = None
    id: str | None = None

    def request(self) -> dict[str, Any]:
        """Return the request to the head node, without the run's ID.

        :raises UsageError: the entry, the data or the environment is invalid
        """
        settings = self.settings
        listed, limit = arrays.parse(settings.array) if settings.array else (None, None)
        return {
            **{key: value for key, value in dataclasses.asdict(settings).items() if key not in LOCAL},
            "entry": check_entry(self.folder, settings.entry),
            "data": check_data(self.folder, settings.data),
            "name": settings.name or self.folder.path.name or "run",
            "array": settings.array,
            "tasks": arrays.text(listed) if listed else None,
            "limit": limit,
            "items": self.items,
            "environment": environment.find(self.folder.path, settings),
            "project": names.folder_key(pending.computer(), self.folder.path),
            "folder": str(self.folder.path),
            "client": f"{_user()}@{socket.gethostname()}",
        }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container the user's number may have no name.
        return str(os.getuid())


LOCAL = ("requirements", "index", "wheels")
"""Settings that only this computer uses; the head node gets the environment that they describe."""


def check_entry(folder: Folder, entry: str | None) -> str:
    """Return the path of the program in the folder.

    :raises UsageError: there is no program that can be run
    """
    if entry is None:
        if not any(file.path == "main.py" for file in folder.files):
            raise UsageError(f"{folder.path} has no main.py", "Choose a program with --entry.")
        entry = "main.py"
    path = os.path.normpath(entry)
    found = next((file for file in folder.files if file.path == path), None)
    if found is None:
        inside = not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir and (folder.path / path).is_file()
        hint = "An ignore file excludes it." if inside else "Name a file in the folder with --entry."
        raise UsageError(f"{entry!r} is not among the files that {folder.path} submits", hint)
    if not path.endswith(".py") and found.size is not None and not found.mode & 0o100:
        raise UsageError(f"{entry} is not executable", f"Run: chmod +x {folder.path / path}")
    return path


def check_data(folder: Folder, paths: Iterable[str]) -> list[str]:
    """Return the paths of data, normalized.

    :raises UsageError: one is not submitted
    """
    found = [os.path.normpath(path) for path in paths]
    for given, path in zip(paths, found, strict=True):
        if not any(f"{file.path}/".startswith(f"{path}/") for file in folder.files):
            raise UsageError(
                f"data: {given!r} is not among the files that {folder.path} submits",
                "Name a file or directory in the folder that no ignore file excludes.",
            )
    return found


def submit(
    head: Head, order: Order, observer: Observer, done: Callable[[Connection, Job], None] = lambda *_: None
) -> Job:
    """Submit an order and return its job.

    An interrupted attempt continues. It counts as interrupted until `done`, which is called with the job, has returned.

    :raises UnreachableError: the cluster did not answer; the same call continues
    :raises IncompleteCopy: nothing was submitted; the same call continues
    :raises SteadError: nothing was submitted, and nothing is left on the cluster
    """
    names.check_run(order.id)
    request = order.request()
    for warning in order.folder.warnings:
        observer.note(warning)
    # Not the host name, which changes with a laptop's network.
    told_apart = [dataclasses.astuple(head), {**request, "client": None}, order.id]
    with pending.claim(told_apart) as kept, Connection(head, observer.note) as connection:
        with _alone(head, order.id, observer):
            begun, run = _begin(connection, order, request, kept, observer)
            if not begun["jobs"]:
                token = begun["token"]
                with _discarded(connection, kept, run, token):
                    _copy(connection, order.folder, begun, observer)
                    listed = [(file.path, file.size) for file in order.folder.files]
                    submitted = connection.ask("submit", **{**request, "id": run, "files": listed, "token": token})
                    begun["jobs"] = submitted["jobs"]
                    job = Job(run, tuple(begun["jobs"]), begun["directory"])
            else:
                job = Job(run, tuple(begun["jobs"]), begun["directory"], again=True)
        known.remember(head, job)
        try:
            done(connection, job)
        except Interrupted as error:
            if error.signal_number == signal.SIGINT:
                kept.remember(run, kept.fingerprint, told=True)
            raise
        except JobFailed:
            kept.forget()
            raise
        kept.forget()
    return job


def rerun(
    head: Head,
    run: str,
    identifier: str | None,
    observer: Observer,
    done: Callable[[Connection, Job], None] = lambda *_: None,
) -> Job:
    """Submit the files of a run, or of one of its tasks, again; an interrupted call continues as with `submit`."""
    names.check_run(identifier)
    claimed = pending.claim(["rerun", dataclasses.astuple(head), run, identifier])
    with claimed as kept, Connection(head, observer.note) as connection:
        with _alone(head, identifier, observer):
            while True:
                if not kept.run:
                    kept.remember(identifier or names.new_run("rerun"), "")
                with _discarded(connection, kept, kept.run):
                    answer = connection.ask("rerun", job=run, id=kept.run)
                over = None if identifier or not answer["again"] else _over(connection, kept.run, kept, "")
                if not over:
                    break
                observer.note(f"an interrupted rerun became job {answer['jobs'][0]}; {over}, so this is a new run")
                kept.forget()
        job = Job(answer["id"], tuple(answer["jobs"]), answer["directory"], again=answer["again"])
        known.remember(head, job)
        done(connection, job)
        kept.forget()
    return job


def _alone(head: Head, identifier: str | None, observer: Observer) -> contextlib.AbstractContextManager[None]:
    """Let one call at a time prepare a run of an ID that its caller chose: the calls share the run's directory."""
    if identifier is None:
        return contextlib.nullcontext()
    what = ["run", head.host, head.directory, identifier]
    return pending.alone(what, lambda: observer.note(f"waiting for another command that submits {identifier}"))


@contextlib.contextmanager
def _discarded(connection: Connection, kept: pending.Pending, run: str, token: str | None = None) -> Iterator[None]:
    """Remove the run from the cluster if the block ends with a refusal that repeating the call would not change."""
    try:
        yield
    except (UnreachableError, Interrupted, IncompleteCopy):
        raise
    except SteadError:
        # Forget it only if it certainly did not become a job: the next attempt gets another ID.
        with contextlib.suppress(SteadError):
            if connection.ask("discard", id=run, token=token)["discarded"]:
                kept.forget()
        raise


def _begin(
    connection: Connection, order: Order, request: dict[str, Any], kept: pending.Pending, observer: Observer
) -> tuple[dict[str, Any], str]:
    """Return the answer to `begin`, and the ID of the run."""
    fingerprint = order.folder.fingerprint
    while True:
        run = order.id or kept.run or names.new_run(request["name"])
        if not kept.run:
            kept.remember(run, fingerprint)
        begun = connection.ask("begin", id=run, project=request["project"])
        if not begun["jobs"]:
            kept.remember(run, fingerprint)
            return begun, run
        over = None if order.id else _over(connection, run, kept, fingerprint)
        if not over:
            return begun, run
        observer.note(
            f"an interrupted submission of this folder became job {begun['jobs'][0]} ({run});"
            f" {over}, so this is a new run"
        )
        kept.forget()


def _over(connection: Connection, run: str, kept: pending.Pending, fingerprint: str) -> str | None:
    """Return why the call is not about a run that an interrupted submission made; None if it is."""
    if kept.fingerprint != fingerprint:
        return "the folder has changed since"
    state = connection.ask("jobs", jobs=[run])["jobs"][0]["state"]
    if state == "cancelled" or (kept.told and state not in ENDLESS):
        return f"it has ended ({state})"
    return None


def _copy(connection: Connection, folder: Folder, begun: dict[str, Any], observer: Observer) -> None:
    observer.began("copying", folder.size)
    paths = [file.path for file in folder.files]
    transfer.push(connection, folder.path, paths, begun["input"], begun["like"], begun["incoming"], observer.copied)


def words(given: Word | Iterable[Word]) -> tuple[str, ...]:
    """Return the arguments of a program: a text or number is one argument, a list is several.

    >>> words("a b"), words(b"a"), words(7), words(["-n", 7])
    (('a b',), ('a',), ('7',), ('-n', '7'))
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return (_text(given),)
    return tuple(map(_text, given))


def _text(word: Word) -> str:
    return os.fsdecode(word) if isinstance(word, bytes) else str(word)


def order_of(
    project: str | os.PathLike[str],
    settings: Settings,
    items: Sequence[Word | Iterable[Word]] | None = None,
    identifier: str | None = None,
) -> Order:
    """Return an order for a folder.

    :raises UsageError: it is not a folder, or there is nothing to do
    """
    listed = None
    if items is not None:
        listed = tuple(map(words, items))
        refuse_nul(word for item in listed for word in item)
        if not listed:
            raise UsageError("the list of items is empty", "Give at least one item.")
        if len(listed) > arrays.MAX_TASKS:
            raise UsageError(
                f"the list has {len(listed)} items, but a run can have at most {arrays.MAX_TASKS} tasks",
                "Split it into several calls.",
            )
        if settings.array:
            raise UsageError(f"a map creates its own array, but `array` is {settings.array!r}", "Remove `array`.")
        settings = dataclasses.replace(settings, array=f"0-{len(listed) - 1}")
    folder = pathlib.Path(project)
    wheels = environment.wheels(folder, settings.wheels) if settings.wheels else []
    return Order(files.collect(folder, wheels), settings, listed, identifier)
