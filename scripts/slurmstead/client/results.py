"""Results on this computer: each file is fetched once, and accepted only with the right checksum."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator
from typing import Any

from slurmstead.client import transfer
from slurmstead.client.connection import Connection
from slurmstead.client.records import Result, State
from slurmstead.client.remote import store
from slurmstead.client.remote.manifest import checksum
from slurmstead.client.submitting import Observer
from slurmstead.errors import CheckFailed, IncompleteCopy, Interrupted, MachineError, SteadError, TaskError, UsageError
from slurmstead.wording import count

RECORD = ".stead.json"
"""In the directory of a run: which of its files were verified, by path, and its outcome if it is complete."""

ATTEMPTS = 3
"""How often a file with a wrong checksum is copied."""


class Fetched:
    """The fetched files of a run; `new` counts those copied by this call."""

    def __init__(self, directory: pathlib.Path, state: State, files: list[str]) -> None:
        self.directory = directory
        self.state = state
        self.files = files
        self.new = 0
        self.bytes = 0


def is_complete(directory: pathlib.Path, state: State) -> bool:
    """Return whether everything of a run that has ended was fetched."""
    record = _read_record(directory)
    # Earlier versions wrote only True.
    is_whole = record.get("complete") in (True, _outcome(state))
    return is_whole and record.get("of", _identity(state)) == _identity(state)


def fetch(connection: Connection, job: str, into: pathlib.Path, observer: Observer) -> Fetched:
    """Fetch the results of a run's ended tasks into a directory of its name; files verified earlier are not copied.

    A job JOB_TASK is one task: the state in the answer is that of the task, and the run does not count as complete.

    :raises UnreachableError: the connection was lost; the same call continues
    :raises CheckFailed: a file is missing, or differs from what the node wrote
    :raises MachineError: this computer cannot write there
    """
    answer = _ask(connection, job, observer)
    directory = into / _checked(answer, "run")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _alone(directory, observer):
            return _fetch(connection, answer, directory, observer)
    except OSError as error:
        place = error.filename or directory
        raise MachineError(f"cannot write {place}: {error.strerror}", "Choose another directory with --to.") from None


def _ask(connection: Connection, job: str, observer: Observer) -> dict[str, Any]:
    """Return the files of a run; for a task that was killed the head node needs several requests for checksums."""
    size, hashed = 0, -1
    while "files" not in (answer := connection.ask("results", job=job)):
        if answer["hashed"] <= hashed:
            raise CheckFailed(
                f"files of {answer['run']} change while their checksums are computed", "Fetch it again later."
            )
        hashed = answer["hashed"]
        if answer["size"] != size:
            size = answer["size"]
            observer.began(f"checking {answer['run']} on the cluster", size)
        observer.copied(hashed / size)
    return answer


@contextlib.contextmanager
def _alone(directory: pathlib.Path, observer: Observer) -> Iterator[None]:
    """Lock a directory against another fetch, so that nothing is copied twice."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        # NFS cannot lock directories; without a lock files are only copied twice.
        with contextlib.suppress(OSError):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                observer.note(f"waiting for another command that fetches to {directory}")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _fetch(connection: Connection, answer: dict[str, Any], directory: pathlib.Path, observer: Observer) -> Fetched:
    state = State.read(answer["summary"])
    entries = _told_apart(answer["files"], directory, observer)
    fetched = Fetched(directory, state, [_checked(entry, "path") for entry in entries])
    for parent in {os.path.dirname(path) for path in fetched.files}:
        # A link that an earlier version of the results has instead of a directory would lead out of it.
        if not (directory / parent).resolve().is_relative_to(directory.resolve()):
            raise UsageError(f"{directory / parent} leads out of the results", "Remove the link, then fetch again.")
    record = _read_record(directory)
    identity = _identity(state)
    if record.get("of", identity) != identity:
        raise UsageError(
            f"{directory} has the results of an earlier run of the same name",
            "Choose another directory with --to, or move this one.",
        )
    verified: dict[str, Any] = record.get("files", {})
    here = [entry for entry in entries if os.path.lexists(directory / entry["path"])]
    _check([entry for entry in here if not _have(directory, entry, verified)], directory, verified, observer)
    missing = [entry for entry in entries if not _have(directory, entry, verified)]
    size = sum(entry.get("size", 0) for entry in missing)
    room = shutil.disk_usage(directory).free
    if size > room:
        raise TaskError(
            f"{directory} needs {size} bytes, but only {room} are free",
            "Free some space, or choose another directory with --to.",
        )
    if missing:
        # An interrupted call leaves files, and they are of this run.
        _write_record(directory, {"of": identity, "files": verified})
    why = ""
    for _ in range(ATTEMPTS):
        if not missing:
            break
        observer.began(f"fetching {answer['run']}", sum(entry.get("size", 0) for entry in missing))
        try:
            paths = [entry["path"] for entry in missing]
            transfer.pull(connection, answer["directory"], paths, directory, observer.copied)
            failure = None
        except Interrupted:
            # Checksums take long; the next call computes them.
            raise
        except SteadError as error:
            failure = error
        # Keep what arrived, even if the rest did not.
        still = [entry for entry in missing if not _verify(directory, entry, verified)]
        _write_record(directory, {"of": identity, "files": verified})
        if isinstance(failure, IncompleteCopy):
            why = f": {failure}"
        elif failure:
            raise failure
        fetched.new += len(missing) - len(still)
        fetched.bytes += sum(entry.get("size", 0) for entry in missing) - sum(entry.get("size", 0) for entry in still)
        missing = still
    if missing:
        others = f", nor {count(len(missing) - 1, 'other file')}" if len(missing) > 1 else ""
        raise CheckFailed(
            f"{missing[0]['path']!r} of {answer['run']} differs from what the node wrote{others}{why}",
            "Was it changed or removed on the share after the job? `stead rerun` creates it again.",
        )
    is_whole = answer["task"] is None and state.ended
    complete = _outcome(state) if is_whole else record.get("complete", False)
    _write_record(directory, {"of": identity, "files": verified, "complete": complete})
    return fetched


def _told_apart(entries: list[dict[str, Any]], directory: pathlib.Path, observer: Observer) -> list[dict[str, Any]]:
    """Return the files without those that would replace each other on a file system that ignores case, as on a Mac."""
    first: dict[str, str] = {}
    for path in sorted(str(entry["path"]) for entry in entries):
        first.setdefault(unicodedata.normalize("NFC", path.casefold()), path)
    if len(first) == len(entries) or _distinguishes_case(directory):
        return entries
    kept = set(first.values())
    left = ", ".join(repr(entry["path"]) for entry in entries if entry["path"] not in kept)
    observer.note(
        f"not fetched: {left}. In {directory} other files have the same names, because its file system ignores case;"
        " choose another directory with --to"
    )
    return [entry for entry in entries if entry["path"] in kept]


def _distinguishes_case(directory: pathlib.Path) -> bool:
    with tempfile.NamedTemporaryFile(prefix=".stead-", dir=directory) as file:
        return not os.path.lexists(directory / os.path.basename(file.name).swapcase())


def read(fetched: Fetched) -> list[Result]:
    """Return what was fetched by task, in their order."""
    found = []
    for task in fetched.state.tasks:
        below = f"tasks/{task.task}/" if fetched.state.array else ""
        place = fetched.directory / below
        result = _read_json(place / "result.json")
        files = [path for path in fetched.files if path.startswith(f"{below}work/")]
        found.append(
            Result(
                task=task.task,
                state=task.state,
                exit_code=task.exit_code,
                node=task.node,
                seconds=(result.get("end") or 0) - (result.get("start") or 0),
                cpu_seconds=result.get("cpu_seconds") or 0.0,
                memory_bytes=result.get("memory_bytes") or 0,
                directory=place,
                files=tuple(fetched.directory / path for path in files),
            )
        )
    return found


def _identity(state: State) -> float | None:
    """Return what tells a run from another one of the same ID, later or on another cluster."""
    return state.submitted


def _outcome(state: State) -> dict[str, Any]:
    """Return what changes if a task of an ended run, which Slurm had given up, writes its result after all."""
    return {"counts": dict(state.counts), "end": state.end}


def _checked(entry: dict[str, Any], key: str) -> str:
    """Return a path from the cluster after checking that it stays in the directory."""
    path = str(entry[key])
    if os.path.isabs(path) or os.path.normpath(path) != path or path.split(os.sep)[0] == os.pardir:
        raise UsageError(f"the cluster sent a path outside the run: {path!r}", "Nothing was fetched.")
    return path


def _have(directory: pathlib.Path, entry: dict[str, Any], verified: dict[str, Any]) -> bool:
    """Return whether a file is here and was verified, even if the user changed it since."""
    return os.path.lexists(directory / entry["path"]) and verified.get(entry["path"]) == _proof(entry)


def _check(
    entries: list[dict[str, Any]], directory: pathlib.Path, verified: dict[str, Any], observer: Observer
) -> None:
    """Verify files that an interrupted call copied, or that the user put here; wrong ones are removed."""
    size, done = sum(entry.get("size", 0) for entry in entries), 0
    if entries:
        observer.began(f"checking {directory.name} on this computer", size)
    for entry in entries:
        _verify(directory, entry, verified)
        done += entry.get("size", 0)
        observer.copied(done / max(size, 1))


def _verify(directory: pathlib.Path, entry: dict[str, Any], verified: dict[str, Any]) -> bool:
    full = directory / entry["path"]
    try:
        if "link" in entry:
            good = bool(os.readlink(full) == entry["link"])
        else:
            good = not full.is_symlink() and full.stat().st_size == entry["size"] and _has_sum(full, entry)
    except OSError:
        return False
    if good:
        verified[entry["path"]] = _proof(entry)
    elif not full.is_dir():
        # rsync would treat a file of the same size and time as unchanged.
        full.unlink(missing_ok=True)
    return good


def _has_sum(full: pathlib.Path, entry: dict[str, Any]) -> bool:
    return checksum(full, entry.get("block")) == str(entry["sha256"])


def _proof(entry: dict[str, Any]) -> str:
    return str(entry.get("sha256") or f"link {entry['link']}")


def _read_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_record(directory: pathlib.Path) -> dict[str, Any]:
    return _read_json(directory / RECORD)


def _write_record(directory: pathlib.Path, record: dict[str, Any]) -> None:
    # A power cut would leave files that are not on the disk yet empty, and the record would say that they are complete.
    os.sync()
    store.write_json(directory / RECORD, record)
