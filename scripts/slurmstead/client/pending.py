"""Remembers interrupted submissions on this computer, so that a repeated command continues them."""

import contextlib
import dataclasses
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any

from slurmstead.client import head
from slurmstead.client.remote import store
from slurmstead.errors import MachineError


def directory() -> pathlib.Path:
    """Return where submissions are remembered; it need not exist."""
    state = os.environ.get("XDG_STATE_HOME") or head.home() / ".local" / "state"
    return pathlib.Path(state) / "slurmstead" / "client"


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    """Report where nothing can be stored: without that, an interrupted submission would become two."""
    try:
        yield
    except OSError as error:
        place = error.filename or directory()
        hint = "Choose a writable directory: export XDG_STATE_HOME=DIRECTORY"
        raise MachineError(f"cannot store submissions in {place}: {error.strerror}", hint) from None


def computer() -> str:
    """Return a name of this computer that stays the same when its host name changes with the network.

    :raises MachineError: it cannot be stored
    """
    path = directory() / "computer"
    with _writing():
        directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            new = path.with_suffix(f".{os.getpid()}")
            store.write(new, secrets.token_hex(8).encode())
            with contextlib.suppress(FileExistsError):
                os.link(new, path)
            new.unlink()
            _sync()
        return path.read_text()


def _sync() -> None:
    """Wait until the names of the files are on the disk."""
    descriptor = os.open(directory(), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclasses.dataclass
class Pending:
    """A submission that may or may not have succeeded; `run` is empty until it has a name.

    `told`: it succeeded, and its user knows the job.
    """

    path: pathlib.Path
    run: str = ""
    fingerprint: str = ""
    told: bool = False

    def remember(self, run: str, fingerprint: str, *, told: bool = False) -> None:
        """Store the ID for the next attempt, before the first byte is sent."""
        self.run, self.fingerprint, self.told = run, fingerprint, told
        with _writing():
            store.write_json(self.path, {"run": run, "fingerprint": fingerprint, "told": told})
            _sync()

    def forget(self) -> None:
        """Make the next attempt a new submission."""
        with _writing():
            self.path.unlink(missing_ok=True)
            # After a power cut the note would be there again, and the next call would submit nothing.
            _sync()
        self.run = ""


@contextlib.contextmanager
def claim(what: Any) -> Iterator[Pending]:
    """Yield the interrupted submission of `what`, or a new one; two clients never get the same.

    :param what: everything that identifies this submission, in JSON types
    :raises MachineError: it cannot be stored on this computer
    """
    with _writing():
        directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        chosen, descriptor = _choose(_digest(what))
    try:
        yield chosen
    finally:
        if not chosen.run:
            with contextlib.suppress(OSError):
                _lock_of(chosen.path).unlink()
        os.close(descriptor)


@contextlib.contextmanager
def alone(what: Any, waits: Callable[[], None]) -> Iterator[None]:
    """Keep other clients of this computer from entering the block with the same `what`, in JSON types; they wait.

    :param waits: is called if another client is in the block
    :raises MachineError: the lock cannot be stored on this computer
    """
    path = directory() / f"{_digest(what)}.alone"
    with _writing():
        directory().mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _lock(path)
    if descriptor is None:
        waits()
        with _writing():
            descriptor = _lock(path, fcntl.LOCK_EX)
    assert descriptor is not None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            _lock_of(path).unlink()
        os.close(descriptor)


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]


def _choose(digest: str) -> tuple[Pending, int]:
    """Return a submission that no process works on, preferably an interrupted one, and the descriptor of its lock."""
    for path in sorted(directory().glob(f"{digest}.*.json")):
        descriptor = _lock(path)
        if descriptor is not None:
            found = _read(path)
            if found.run:
                return found, descriptor
            os.close(descriptor)
    for slot in itertools.count():
        path = directory() / f"{digest}.{slot}.json"
        descriptor = _lock(path)
        if descriptor is not None:
            return _read(path), descriptor
    raise AssertionError


def _lock_of(path: pathlib.Path) -> pathlib.Path:
    return path.with_suffix(".lock")


def _lock(path: pathlib.Path, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> int | None:
    """Lock a submission until the descriptor is closed or the process ends; return None if another one holds it.

    :param how: LOCK_EX waits for the other one instead
    """
    while True:
        descriptor = os.open(_lock_of(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how)
            # The process that held it may have removed the file since it was opened here.
            if os.path.samestat(os.fstat(descriptor), os.stat(_lock_of(path))):
                return descriptor
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def _read(path: pathlib.Path) -> Pending:
    try:
        found = json.loads(path.read_text())
        return Pending(path, str(found["run"]), str(found["fingerprint"]), bool(found.get("told")))
    except (FileNotFoundError, ValueError, KeyError):
        return Pending(path)
