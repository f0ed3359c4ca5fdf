"""The processes of this computer, from /proc (proc(5)); empty on systems other than Linux."""

import contextlib
import os
import pathlib
import signal
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Process(NamedTuple):
    """A process; its start time (clock ticks since boot) distinguishes it from a later process with the same ID."""

    pid: int
    parent: int
    started: int


def _read(pid: str) -> Process | None:
    try:
        # Fields are counted after the name, which is in brackets and can contain brackets and any bytes.
        fields = pathlib.Path("/proc", pid, "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] == b"Z" else Process(int(pid), int(fields[1]), int(fields[19]))


def descendants(pid: int) -> list[Process]:
    """Return all descendants of a process, parents first; processes that became daemons are not found."""
    with contextlib.suppress(FileNotFoundError):
        everything = [process for name in os.listdir("/proc") if name.isdigit() and (process := _read(name))]
        found = [process for process in everything if process.parent == pid]
        for above in found:
            found.extend(process for process in everything if process.parent == above.pid)
        return found
    return []


def alive(processes: Iterable[Process]) -> list[Process]:
    """Return the processes that still run."""
    return [process for process in processes if (now := _read(str(process.pid))) and now.started == process.started]


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Send a signal to the processes that still run."""
    for process in alive(processes):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def end(processes: Iterable[Process], seconds: float) -> None:
    """Wait for the processes to end, then kill those that still run."""
    waited_for = list(processes)
    deadline = time.monotonic() + seconds
    while alive(waited_for) and time.monotonic() < deadline:
        time.sleep(0.05)
    send(waited_for, signal.SIGKILL)


@contextlib.contextmanager
def children_end_with_us() -> Iterator[None]:
    """End all child processes when the block raises an exception."""
    try:
        yield
    except BaseException:
        below = descendants(os.getpid())
        send(below, signal.SIGTERM)
        end(below, seconds=10)
        raise


def memory_bytes(pids: Iterable[int]) -> int:
    """Return the total memory that processes of this user hold now, in bytes; shared pages count once."""
    kibibytes = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            kibibytes += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return kibibytes * 1024
