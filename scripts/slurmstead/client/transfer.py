"""Copying by rsync through a connection: only what changed, resumable, any file name."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator

from slurmstead.client.connection import Connection
from slurmstead.errors import MachineError, SteadError, TaskError, UnreachableError, UsageError

Report = Callable[[float], None]
"""Is told which part of the bytes has been looked at, 0 to 1."""

PARTIAL = ".stead-partial"

OPTIONS = (
    "--links",
    "--perms",
    "--times",
    # To the nanosecond (rsync 3.1.3): a program that writes a file and submits it may do so twice in a second.
    "--modify-window=-1",
    # Whatever the modes were, their owner can copy and remove the files.
    "--chmod=u+rwX",
    "--from0",
    # Since 3.2.6 it is called --secluded-args, and this still is.
    "--protect-args",
    # A large file that was cut goes on where it was.
    f"--partial-dir={PARTIAL}",
    "--info=progress2",
    "--no-inc-recursive",
    "--outbuf=N",
    "--timeout=60",
)

PERCENT = re.compile(rb"(\d+)%")
FULL = ("no space left", "disk quota exceeded")


def check_rsync() -> None:
    """Make sure that this computer has an rsync that can do what is asked of it.

    :raises MachineError: it has none, or an old one
    """
    if shutil.which("rsync") is None:
        raise MachineError("this computer has no rsync", "Install it, on Debian: apt install rsync")
    said = subprocess.run(["rsync", "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"version (\d+)\.(\d+)\.(\d+)", said)
    if not match or tuple(map(int, match.groups())) < (3, 1, 3):
        raise MachineError(
            f"expected rsync 3.1.3 or newer, seen {said.splitlines()[:1]}", "On a Mac: brew install rsync"
        )


def push(
    connection: Connection,
    folder: pathlib.Path,
    files: Iterable[str],
    target: str,
    like: Iterable[str],
    incoming: str,
    report: Report,
) -> None:
    """Copy files of a folder into a directory of the head node; what is as in one of `like` is linked to it.

    :param incoming: a directory there in which a file stands until it is complete: what of another client's copy is
        half done is then no file of the same run
    :raises SteadError: not everything arrived; what did is used by the next attempt
    """
    known = [f"--link-dest={directory}" for directory in like]
    options = [f"--temp-dir={incoming}", *known]
    _run(connection, [*options, f"{folder}/", f"{connection.head.in_rsync}:{target}/"], files, report)


def pull(connection: Connection, source: str, files: Iterable[str], target: pathlib.Path, report: Report) -> None:
    """Copy files of a directory of the head node to this computer.

    :raises SteadError: not everything arrived; what did is used by the next attempt
    """
    target.mkdir(parents=True, exist_ok=True)
    # Absolute, because what stands before a : would be a host.
    _run(connection, [f"{connection.head.in_rsync}:{source}/", f"{target.absolute()}/"], files, report)


def _run(connection: Connection, places: list[str], files: Iterable[str], report: Report) -> None:
    check_rsync()
    with tempfile.TemporaryFile() as words, _listing(files) as listing:
        command = ["rsync", *OPTIONS, f"--files-from={listing}", f"--rsh={shlex.join(connection.ssh())}", *places]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words) as process:
            try:
                assert process.stdout is not None
                while block := os.read(process.stdout.fileno(), 4096):
                    if seen := PERCENT.findall(block):
                        report(int(seen[-1]) / 100)
            except BaseException:
                process.kill()
                raise
        words.seek(0)
        said = words.read().decode(errors="replace")
    if process.returncode:
        raise error(process.returncode, said, connection.head.host)
    report(1.0)


@contextlib.contextmanager
def _listing(files: Iterable[str]) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(prefix="stead-") as file:
        # The ./ keeps a name that begins with # or ; from being a comment.
        file.write(b"".join(b"./" + path.encode(errors="surrogateescape") + b"\0" for path in files))
        file.flush()
        yield file.name


def error(code: int, said: str, host: str) -> SteadError:
    """Return why rsync ended with a code (rsync(1), EXIT VALUES) as an exception."""
    lines = [line for line in said.splitlines() if line and not line.startswith("rsync error:")]
    first = lines[0] if lines else f"rsync ended with {code}"
    if any(word in said.lower() for word in FULL):
        full = next(line for line in said.splitlines() if any(word in line.lower() for word in FULL))
        return TaskError(f"the disk is full: {full}", "Make room there, then call again.")
    if code == 127 or "rsync: command not found" in said or "rsync: not found" in said:
        return TaskError(f"{host} has no rsync", "Ask the administrator to install the package rsync on the head node.")
    # 20: the head node shuts down, and ends its rsync first.
    if code in (10, 12, 20, 30, 35, 255) or code < 0:
        return UnreachableError(
            f"the connection to {host} was cut while files were copied: {first}",
            "The same command carries on from here.",
        )
    if code in (23, 24):
        return UsageError(f"not every file could be copied: {first}", "Leave it out with .steadignore, or call again.")
    return TaskError(f"rsync ended with {code}: {first}")
