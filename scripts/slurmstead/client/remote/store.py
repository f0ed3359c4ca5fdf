"""The directory on the share in which runs and environments stand, and how to write there.

runs/ID/              a run; ID is made by the client
  request.json        what was asked for
  ledger.json         which jobs of Slurm it became
  input/              the folder as it was submitted; unchanged files are one with those of the runs before (hard links)
  work/ stdout stderr result.json manifest.json          what became of it; of an array in tasks/N/
  done/N              task N has ended: a copy of its result.json (0 without an array)
  started/            which job of Slurm began it
  log/                what Slurm and this program said about it
environments/         virtual environments: KEY is a link to the complete one, KEY.lock its lock
library/              this program, by its checksum, for the nodes
incoming/             files that are being copied
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
import time
from collections.abc import Iterator
from typing import Any

from slurmstead.client.remote.errors import NoAnswer, Refusal, WrongRequest

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

LOCK_SECONDS = 90
"""How long another command of the same user may hold the lock: as long as sbatch may take, and more."""


class Store:
    """The directories; none need exist."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.runs = root / "runs"
        self.environments = root / "environments"
        self.library = root / "library"
        self.incoming = root / "incoming"
        self.projects = root / "projects"

    def run(self, identifier: str) -> pathlib.Path:
        """Return the directory of a run.

        :raises WrongRequest: no run can have that name
        """
        if not ID.fullmatch(identifier):
            raise WrongRequest(f"{identifier!r} cannot be a run", "Use letters, digits, '.', '_' and '-', at most 80.")
        return self.runs / identifier

    def make(self) -> None:
        """Make the directories, which only their user can enter.

        :raises Refusal: they cannot be made
        """
        try:
            # Their modes, because parents=True would give the first of them to everybody.
            self.root.parent.mkdir(parents=True, exist_ok=True)
            for directory in (self.root, self.runs, self.environments, self.library, self.incoming, self.projects):
                directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            if error.errno in FULL:
                raise
            raise Refusal(
                f"cannot make {self.root}: {error.strerror}",
                "Name a directory of yours that all nodes share: `directory` in stead.toml, or --directory.",
            ) from None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock under which runs are begun, submitted and discarded."""
        with locked(self.root / "lock", LOCK_SECONDS):
            yield


FULL = {errno.ENOSPC: "no space left", errno.EDQUOT: "quota exceeded"}
"""Errors that mean a full disk, and what they are called."""


def open_store(directory: str | None) -> Store:
    """Return the store in a directory, or the user's own below their home.

    :raises Refusal: it is to be below the home, and there is none
    """
    user = pwd.getpwuid(os.getuid())
    path = pathlib.Path(directory or "~/slurmstead")
    if path.parts[0] == "~":
        if not os.path.isdir(user.pw_dir):
            raise Refusal(
                f"{user.pw_name} has no home on {os.uname().nodename}: {user.pw_dir} does not exist",
                "Ask the administrator for it, or name a directory of yours that all nodes share with --directory.",
            )
        path = pathlib.Path(user.pw_dir, *path.parts[1:])
    if not path.is_absolute():
        raise WrongRequest(f"the directory {directory!r} is not absolute", "Begin it with / or ~/.")
    return Store(path)


@contextlib.contextmanager
def locked(path: pathlib.Path, seconds: float) -> Iterator[None]:
    """Hold a lock that ends with its holder, also when that is killed; on NFS 4 it holds between nodes.

    :raises NoAnswer: somebody else held it for all the seconds
    """
    # POSIX locks, because flock(2) on NFS needs the same and is local on some servers.
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
                raise NoAnswer(f"{path} was held by another command for {seconds:.0f} s", "Try again in a minute.")
            time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def write(path: pathlib.Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file as a whole or not at all, and wait until it is on the disk."""
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
    """Write a value as JSON; names that are not UTF-8 survive, as surrogates in \\u escapes."""
    write(path, json.dumps(value, indent=1).encode() + b"\n")


def read_json(path: pathlib.Path) -> Any:
    """Return a value that was written as JSON, or None if there is none that can be read."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
