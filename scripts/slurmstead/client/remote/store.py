"""The directory of runs and environments on the share, and how to write to it.

runs/ID/              a run; the client chooses ID; .ID.*.stead is a run that is being removed
  .stead              the mark of what is made here; other directories of this list have it too, and the one they
                      are in; that of a run contains the token of the latest call that began it
  request.json        the request
  ledger.json         the numbers of its Slurm jobs
  input/              the folder as submitted; unchanged files are hard links to those of earlier runs
  work/ stdout stderr result.json manifest.json          its results; those of an array are in tasks/N/
  checksums.json      those of a task that left no manifest; beside its work/
  restarts.json       how often Slurm has requeued and started a task; beside its work/
  done/N              task N has ended: a copy of its result.json (0 without an array)
  started/            the Slurm job that started each chunk
  log/                output of Slurm and of this program
environments/         virtual environments: KEY is a link to the complete one, KEY.lock its lock
library/              this program, by its checksum, for the nodes
.stead-incoming/      files that are being copied
projects/KEY          the latest runs of a folder
"""

import contextlib
import errno
import fcntl
import json
import os
import pathlib
import pwd
import re
import shutil
import time
from collections.abc import Iterator
from typing import Any

from slurmstead.client.remote.errors import NoAnswer, Refusal, WrongRequest

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
ID_RULE = "Use at most 80 letters, digits, '.', '_' and '-'; begin with a letter or digit."

JOB = re.compile(r"[0-9]+(_[0-9]+)?")
"""Slurm's name of a job or task; a run of this name would hide the job from verbs that accept both."""

MARK = ".stead"
"""In each run and other directory that was made here; a user's own may have the same names, and is left alone."""

BUILD = re.compile(r"(py\d+\.\d+-.+-[0-9a-f]{16})\.build-[0-9a-f]{8}")
"""The name of the directory of an environment; the group is its KEY."""

DIRECTORY = "~/slurmstead"
"""The directory of a user who names no other one."""

LOCK_SECONDS = 90
"""How long to wait for another command of the same user: longer than sbatch may take."""


class Store:
    """The paths of the directories; they need not exist."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.runs = root / "runs"
        self.environments = root / "environments"
        self.library = root / "library"
        self.incoming = root / ".stead-incoming"
        self.projects = root / "projects"

    def run(self, identifier: str) -> pathlib.Path:
        """Return the directory of a run.

        :raises WrongRequest: this is not a valid ID
        """
        if not ID.fullmatch(identifier):
            raise WrongRequest(f"{identifier!r} is not a valid run ID", ID_RULE)
        return self.runs / identifier

    def make(self) -> None:
        """Create the directories, accessible only to their user.

        :raises Refusal: they cannot be created
        """
        try:
            # One by one: parents=True would ignore the mode for all but the last directory.
            self.root.parent.mkdir(parents=True, exist_ok=True)
            for directory in (self.root, self.environments, self.library, self.incoming, self.projects):
                if not directory.is_dir():
                    directory.mkdir(mode=0o700, exist_ok=True)
                    (directory / MARK).touch()
            # Each run in it has a mark.
            self.runs.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            if error.errno in FULL:
                raise
            raise Refusal(
                f"cannot create {self.root}: {error.strerror}",
                "Set `directory` in stead.toml, or --directory, to a writable directory on the share.",
            ) from None

    def remove(self, run: pathlib.Path) -> None:
        """Remove the directory of a run; if this is interrupted, what is left is no run, and `sweep` removes it."""
        gone = run.with_name(f".{run.name}.{os.urandom(4).hex()}.stead")
        with contextlib.suppress(FileNotFoundError):
            os.rename(run, gone)
            shutil.rmtree(gone, ignore_errors=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock under which runs are begun, submitted and discarded."""
        with locked(self.root / "lock", LOCK_SECONDS):
            yield


FULL = {errno.ENOSPC: "no space left", errno.EDQUOT: "quota exceeded"}
"""Errors that mean a full disk, and their description."""


def open_store(directory: str | None) -> Store:
    """Return the store in a directory, by default ~/slurmstead of the user.

    :raises WrongRequest: the directory is not absolute
    :raises Refusal: the directory is in the user's home, which does not exist
    """
    user = pwd.getpwuid(os.getuid())
    path = pathlib.Path(directory or DIRECTORY)
    if path.parts[:1] == ("~",):
        if not os.path.isdir(user.pw_dir):
            raise Refusal(
                f"{user.pw_name} has no home on {os.uname().nodename}: {user.pw_dir} does not exist",
                "Ask the administrator to create it, or use --directory with a writable directory on the share.",
            )
        path = pathlib.Path(user.pw_dir, *path.parts[1:])
    if not path.is_absolute():
        raise WrongRequest(f"the directory {directory!r} is not absolute", "Start it with / or ~/.")
    return Store(path)


@contextlib.contextmanager
def locked(path: pathlib.Path, seconds: float) -> Iterator[None]:
    """Hold a lock, which is released even when its process is killed; on NFS 4 it is shared by all nodes.

    :raises NoAnswer: another process held it during all of `seconds`
    """
    # POSIX locks: on NFS, flock(2) becomes a POSIX lock or stays local to the node.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
            if time.monotonic() > deadline:
                raise NoAnswer(
                    f"another command has held the lock {path} for {seconds:.0f} s", "Try again in a minute."
                )
            time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def write(path: pathlib.Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically, and wait until it is on the disk."""
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_json(path: pathlib.Path, value: Any) -> None:
    """Write a value as JSON; names that are not UTF-8 survive as surrogates in \\u escapes."""
    write(path, json.dumps(value, indent=1).encode() + b"\n")


def read_json(path: pathlib.Path) -> Any:
    """Return the value in a JSON file, or None if the file is missing or not valid JSON."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
