"""Copies files by rsync through a connection: only changes, resumable, with any file name."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator

from slurmstead.client import nearby
from slurmstead.client.connection import Connection
from slurmstead.errors import IncompleteCopy, MachineError, SteadError, TaskError, UnreachableError

Report = Callable[[float], None]
"""Receives the fraction of the bytes that is done, 0 to 1."""

PARTIAL = ".stead-partial"

OPTIONS = (
    "--links",
    "--perms",
    "--times",
    # To the nanosecond (rsync 3.1.3): a program may write and submit a file twice in one second.
    "--modify-window=-1",
    # The owner can always copy and remove the files, whatever their modes were.
    "--chmod=u+rwX",
    "--from0",
    # Since 3.2.6 it is called --secluded-args; this name still works.
    "--protect-args",
    # An interrupted large file continues.
    f"--partial-dir={PARTIAL}",
    "--info=progress2",
    "--no-inc-recursive",
    "--outbuf=N",
    "--timeout=60",
)

PERCENT = re.compile(rb"(\d+)%")
FULL = ("no space left", "disk quota exceeded")


def check_rsync() -> None:
    """Check that this computer has a recent rsync.

    :raises MachineError: it has no rsync, or an old one
    """
    if shutil.which("rsync") is None:
        raise MachineError("this computer has no rsync", "Install it, on Debian: apt install rsync")
    said = subprocess.run(["rsync", "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"version v?(\d+)\.(\d+)\.(\d+)", said)
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
    """Copy files of a folder to a directory on the head node; files unchanged from one of `like` are hard links to it.

    :param incoming: a directory there for incomplete files, so that another client's partial copy is never a file of
        the run
    :raises SteadError: not everything arrived; the next attempt continues
    """
    if connection.head.is_local:
        nearby.copy(folder, files, pathlib.Path(target), [pathlib.Path(one) for one in like], report)
        return
    known = [f"--link-dest={directory}" for directory in like]
    # --force: a directory of an interrupted copy can be a file now.
    options = [f"--temp-dir={incoming}", "--force", *known]
    _run(connection, [*options, f"{folder}/", f"{connection.head.in_rsync}:{target}/"], files, report)


def pull(connection: Connection, source: str, files: Iterable[str], target: pathlib.Path, report: Report) -> None:
    """Copy files of a directory on the head node to this computer.

    :raises SteadError: not everything arrived; the next attempt continues
    """
    target.mkdir(parents=True, exist_ok=True)
    if connection.head.is_local:
        nearby.copy(pathlib.Path(source), files, target, (), report)
        return
    # Absolute, because rsync reads the text before a : as a host.
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
        # Without ./ a name that begins with # or ; would be a comment; with / at its end, a directory would be copied
        # with the files in it, which an ignore file excludes.
        names = (path.rstrip("/").encode(errors="surrogateescape") for path in files)
        file.write(b"".join(b"./" + name + b"\0" for name in names))
        file.flush()
        yield file.name


def error(code: int, said: str, host: str) -> SteadError:
    """Return the exception for an exit code of rsync (rsync(1), EXIT VALUES)."""
    lines = [line for line in said.splitlines() if line and not line.startswith("rsync error:")]
    first = lines[0] if lines else f"rsync exited with {code}"
    if any(word in said.lower() for word in FULL):
        full = next(line for line in said.splitlines() if any(word in line.lower() for word in FULL))
        return TaskError(f"the disk is full: {full}", "Free some space there, then repeat the command.")
    if code == 127 or "rsync: command not found" in said or "rsync: not found" in said:
        return TaskError(f"{host} has no rsync", "Ask the administrator to install the package rsync on the head node.")
    # 20: the head node is shutting down and killed its rsync.
    if code in (10, 12, 20, 30, 35, 255) or code < 0:
        return UnreachableError(
            f"the connection to {host} was lost while copying files: {first}",
            "Repeat the same command to continue.",
        )
    if code in (23, 24):
        return IncompleteCopy(
            f"not every file could be copied: {first}", "Exclude it in .steadignore, or repeat the command."
        )
    return TaskError(f"rsync exited with {code}: {first}")
