# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The cluster lock: a lease on every machine of the inventory that the run can reach.

Two runs that can both reach some machine therefore never work at once, and no machine is touched by a run that does not
hold its lease. No machine is special, so a control node that is off changes nothing.

On each machine a holder keeps a lock of flock(2). A watcher on this computer sends it a heartbeat and waits for the
echo. Without heartbeats the holder gives the lock up after LEASE seconds, not before: also not when its connection
ends, because the run may not know that yet: another run waits for it. The run counts the same time from the moment at
which it sent the last heartbeat that was echoed, so it always stops first (plugins/callback/cluster_lease.py asks
before each task).

Two runs that start at the same instant meet at one machine, because both take their leases there first: control, or
the first of the others that answers. See lock_watcher.py for the watcher.
"""

from __future__ import annotations

import fcntl
import json
import pathlib
import time
from dataclasses import dataclass, field

PATH = pathlib.Path("/run/slurmstead/lock")

LEASE = 60.0
"""Seconds without a heartbeat after which a machine's lock ends."""

MARGIN = 5.0
"""Seconds before the end of a lease at which the run no longer relies on it: the time to start a task."""

READY, HELD, OTHER, MEANWHILE = "ready", "held", "other", "meanwhile"
"""First words of the holder's answers. After OTHER and MEANWHILE comes the text of another run, which has the lock now
or had it since this run lost it.
"""

FIRST, AGAIN, BYE = "first", "again", "bye"
"""Requests to the holder: take the lock, take it again after a lost connection, release it. Others are heartbeats."""

HOLDER = f"""
import fcntl, os, select, signal, sys, time
run, text = sys.argv[1:]
directory = {str(PATH.parent)!r}
os.makedirs(directory, mode=0o700, exist_ok=True)
os.chmod(directory, 0o700)
lock = os.open(directory + {"/" + PATH.name!r}, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
os.fchmod(lock, 0o600)
def say(*words):
    try:
        os.write(1, " ".join(words).encode() + b"\\n")
    except OSError:
        pass
def hear(seconds):
    return os.read(0, 4096).decode() if select.select([0], [], [], seconds)[0] else None
def note(process):
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{{run}} {{process}}\\n{{text}}\\n".encode(), 0)
def last():
    first, _, rest = os.pread(lock, 4096, 0).decode(errors="replace").partition("\\n")
    return first.split() if rest else ["?", "0"], (rest or first).strip() or "another run"
say({READY!r})
request = (hear({2 * LEASE}) or sys.exit()).split()
until = time.monotonic() + 2
while True:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
    except BlockingIOError:
        (who, process), what = last()
        if who == run:
            # Its own, whose connection was lost.
            os.kill(abs(int(process)), signal.SIGKILL)
        elif time.monotonic() > until and process[0] != "-":
            sys.exit(say({OTHER!r}, what))
        time.sleep(0.1)
(who, _), what = last()
if request[0] == {AGAIN!r} and who not in (run, "?"):
    sys.exit(say({MEANWHILE!r}, what))
note(os.getpid())
say({HELD!r})
end = time.monotonic() + {LEASE}
while (left := end - time.monotonic()) > 0 and {BYE!r} not in request:
    heard = hear(left)
    if heard == "":
        # The connection has ended; the run may still rely on its lease. Another that asks now waits for its end.
        note(-os.getpid())
        time.sleep(max(0, end - time.monotonic()))
    elif heard:
        end = time.monotonic() + {LEASE}
        say(heard.rstrip())
        if {BYE!r} in heard.split():
            break
"""
"""The program of a machine. Its arguments are the run's ID and its description; it runs as root."""


@dataclass
class Leases:
    """What the watcher knows about the leases of a run. Times are seconds of `now`."""

    until: dict[str, float] = field(default_factory=dict)
    """For each machine the end of its lease; 0 if it is not held."""
    tried: dict[str, float] = field(default_factory=dict)
    """For each machine when the last attempt to take its lock failed."""
    why: dict[str, str] = field(default_factory=dict)
    """Machines that answer and still cannot be locked, and their error."""
    lost: str = ""
    """Another run that has taken a lock of this run, or had it in between."""

    def write(self, path: pathlib.Path) -> None:
        """Replace the file of a run's leases."""
        new = path.with_suffix(".new")
        new.write_text(json.dumps(vars(self)))
        new.replace(path)

    def holds(self, name: str, at: float) -> bool:
        """Say whether a task may start on a machine.

        >>> leases = Leases(until={"node1": 100.0, "node2": 0.0})
        >>> leases.holds("node1", 94), leases.holds("node1", 96), leases.holds("node2", 0), leases.holds("node3", 0)
        (True, False, False, False)
        """
        return at < self.until.get(name, 0.0) - MARGIN


def read(path: pathlib.Path) -> Leases | None:
    """Return the leases in a file; None without a file, because the run has not locked anything yet."""
    try:
        return Leases(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None


def is_held(path: pathlib.Path = PATH) -> bool:
    """Whether a run has this machine's lease now."""
    try:
        with path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def now() -> float:
    """Return the seconds since this computer's start, including those in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def holder() -> str:
    """Return the description of the run that has, or last had, this machine's lock; empty if none had."""
    try:
        return PATH.read_text().rstrip().rpartition("\n")[2]
    except OSError:
        return ""


def successor(before: str) -> str:
    """Return the run that has taken over the lock from a given holder; empty if none has.

    For modules that wait on the control node, because they outlive a killed ansible-playbook.
    """
    now_held = holder()
    return now_held if now_held != before else ""
