"""Submitting a folder, so that it becomes a run once, at whatever moment this computer gives up."""

import contextlib
import dataclasses
import getpass
import os
import pathlib
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from slurmstead.client import environment, files, names, pending, transfer
from slurmstead.client.connection import Connection
from slurmstead.client.files import Folder
from slurmstead.client.head import Head
from slurmstead.client.records import Job
from slurmstead.client.remote import arrays
from slurmstead.client.settings import Settings, refuse_nul
from slurmstead.errors import Interrupted, SteadError, UnreachableError, UsageError

Word = str | bytes | int | float | os.PathLike[str]
"""What can be an argument of a program."""


class Observer(Protocol):
    """Is told how far a transfer is, and what a person should know."""

    def began(self, what: str, size: int) -> None:
        """Say that `size` bytes are to be copied."""

    def copied(self, part: float) -> None:
        """Say which part of them was looked at, 0 to 1."""

    def note(self, text: str) -> None:
        """Say something."""


class Silent:
    """An observer that says nothing."""

    def began(self, what: str, size: int) -> None:
        """Say nothing."""

    def copied(self, part: float) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


@dataclasses.dataclass(frozen=True)
class Order:
    """A folder, what is to be done with it, for a map the arguments of each task, and the id that a caller chose."""

    folder: Folder
    settings: Settings
    items: tuple[tuple[str, ...], ...] | None = None
    id: str | None = None

    def request(self) -> dict[str, Any]:
        """Return what the head node is asked for, but for the run's id.

        :raises UsageError: the entry or the environment cannot be meant
        """
        settings = self.settings
        listed, limit = arrays.parse(settings.array) if settings.array else (None, None)
        return {
            **{key: value for key, value in dataclasses.asdict(settings).items() if key not in LOCAL},
            "entry": check_entry(self.folder, settings.entry),
            "name": settings.name or self.folder.path.name or "run",
            "array": settings.array,
            "tasks": arrays.text(listed) if listed else None,
            "limit": limit,
            "items": self.items,
            "environment": check_wheels(self.folder, environment.find(self.folder.path, settings)),
            "project": names.folder_key(self.folder.path),
            "folder": str(self.folder.path),
            "client": f"{_user()}@{socket.gethostname()}",
        }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container nobody may have the number of the user.
        return str(os.getuid())


LOCAL = ("requirements", "index", "wheels")
"""Settings that say how the environment is described; the head node gets the description."""


def check_entry(folder: Folder, entry: str | None) -> str:
    """Return the path of the program in the folder.

    :raises UsageError: there is none that could be run
    """
    if entry is None:
        if not any(file.path == "main.py" for file in folder.files):
            raise UsageError(f"which program in {folder.path} is to be run is not said", "Name it: --entry PROGRAM")
        entry = "main.py"
    path = os.path.normpath(entry)
    found = next((file for file in folder.files if file.path == path), None)
    if found is None:
        inside = not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir and (folder.path / path).is_file()
        hint = "An ignore file leaves it out." if inside else "--entry names a file in the folder."
        raise UsageError(f"{folder.path} submits no file {entry!r}", hint)
    if not path.endswith(".py") and found.size is not None and not found.mode & 0o100:
        raise UsageError(f"{entry} cannot be executed", f"chmod +x {folder.path / path}")
    return path


def check_wheels(folder: Folder, found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an environment whose wheels are all submitted.

    :raises UsageError: they are not; an ignore file for Python often has `wheels/` or `*.whl`
    """
    if found and "wheels" in found:
        submitted = {file.path for file in folder.files}
        for wheel in sorted((folder.path / found["wheels"]).glob("*.whl")):
            path = os.path.normpath(os.path.join(found["wheels"], wheel.name))
            if path not in submitted:
                raise UsageError(f"an ignore file leaves out {path}", f"Write !{path} into {folder.path}/.steadignore")
    return found


def submit(
    head: Head, order: Order, observer: Observer, done: Callable[[Connection, Job], None] = lambda *_: None
) -> Job:
    """Submit an order and return what it became.

    An attempt that was cut off goes on where it was. It counts as cut off until `done`, which is called with the job,
    has returned.

    :raises UnreachableError: the cluster did not answer; the same call carries on
    :raises SteadError: it cannot be done; nothing was submitted, and nothing is left on the cluster
    """
    request = order.request()
    for warning in order.folder.warnings:
        observer.note(warning)
    told_apart = [dataclasses.astuple(head), request, order.id]
    with pending.claim(told_apart) as kept, Connection(head, observer.note) as connection:
        begun, run = _begin(connection, order, request, kept, observer)
        if not begun["jobs"]:
            with _discarded(connection, kept, run):
                _copy(connection, order.folder, begun, observer)
                listed = [(file.path, file.size) for file in order.folder.files if not file.path.endswith("/")]
                begun["jobs"] = connection.ask("submit", **{**request, "id": run, "files": listed})["jobs"]
                job = Job(run, tuple(begun["jobs"]), begun["directory"])
        else:
            job = Job(run, tuple(begun["jobs"]), begun["directory"], again=True)
        try:
            done(connection, job)
        except (UnreachableError, Interrupted):
            raise
        except SteadError:
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
    """Submit once more what a run, or a task of it, was made of; cut off it goes on as `submit` does."""
    claimed = pending.claim(["rerun", dataclasses.astuple(head), run, identifier])
    with claimed as kept, Connection(head, observer.note) as connection:
        if not kept.run:
            kept.remember(identifier or names.new_run("rerun"), "")
        with _discarded(connection, kept, kept.run):
            answer = connection.ask("rerun", job=run, id=kept.run)
        job = Job(answer["id"], tuple(answer["jobs"]), answer["directory"])
        done(connection, job)
        kept.forget()
    return job


@contextlib.contextmanager
def _discarded(connection: Connection, kept: pending.Pending, run: str) -> Iterator[None]:
    """Leave nothing of a run on the cluster if the block ends with a refusal."""
    try:
        yield
    except (UnreachableError, Interrupted):
        raise
    except SteadError:
        # Only what certainly is no job may be forgotten: the next attempt has another id then.
        with contextlib.suppress(SteadError):
            if connection.ask("discard", id=run)["discarded"]:
                kept.forget()
        raise


def _begin(
    connection: Connection, order: Order, request: dict[str, Any], kept: pending.Pending, observer: Observer
) -> tuple[dict[str, Any], str]:
    """Return the answer to `begin`, and the id of the run."""
    fingerprint = order.folder.fingerprint
    while True:
        before = (kept.run, kept.fingerprint)
        run = order.id or kept.run or names.new_run(request["name"])
        if not kept.run:
            kept.remember(run, fingerprint)
        begun = connection.ask("begin", id=run, project=request["project"])
        if not begun["jobs"] or order.id or before[1] == fingerprint:
            kept.remember(run, fingerprint)
            return begun, run
        # What was cut off had come through, but with what the folder held then.
        observer.note(
            f"an interrupted submission of this folder did become job {begun['jobs'][0]} ({run});"
            " the folder was changed since, so this is another run"
        )
        kept.forget()


def _copy(connection: Connection, folder: Folder, begun: dict[str, Any], observer: Observer) -> None:
    observer.began("copying", folder.size)
    paths = [file.path for file in folder.files]
    transfer.push(connection, folder.path, paths, begun["input"], begun["like"], begun["incoming"], observer.copied)


def words(given: Word | Iterable[Word]) -> tuple[str, ...]:
    """Return arguments of a program: a text or number is one, of a list each is.

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

    :raises UsageError: it is no folder, or there is nothing to do
    """
    listed = None
    if items is not None:
        listed = tuple(map(words, items))
        refuse_nul(word for item in listed for word in item)
        if not listed:
            raise UsageError("there is nothing to map over: the list is empty")
        if settings.array:
            raise UsageError("a map makes its own array", "Leave `array` out.")
        settings = dataclasses.replace(settings, array=f"0-{len(listed) - 1}")
    return Order(files.collect(pathlib.Path(project)), settings, listed, identifier)
