#!/usr/bin/python3 -IS
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""HealthCheckProgram of Slurm, run as root by slurmd before it registers and in every HealthCheckInterval.

Drains this worker when it has less than slurm.conf declares, when the share, scratch or its own disk cannot be used,
when the clock is off, when a cgroup controller is missing or when a drop-in fails; resumes it once nothing is wrong.
Takes back what Slurm drained for a job once nothing is left of it, and ends processes of jobs that slurmctld has given
up or that can never begin. An administrator's drain stays.

slurmd runs it with SLURMD_NODENAME and nothing else in the environment, and waits for the end of its output
(run_script_health_check in src/slurmd/slurmd/slurmd.c, 21.08 to 24.11).
"""

from __future__ import annotations

import errno
import fcntl
import functools
import json
import os
import re
import select
import signal
import subprocess
import sys
import syslog
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import NamedTuple

SETTINGS = "/etc/default/slurmstead-health"
SCRATCH = "/etc/default/slurmstead-scratch"
DROP_INS = "/usr/local/lib/slurmstead/health.d"
"""Programs of the operator, which the role slurmd installs; a missing directory holds none."""
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LOCK = "/run/slurmstead-health-"
CONFIGURATIONS = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf")
"""Where scontrol looks for slurm.conf; the second is what a slurmd without a file of its own has fetched."""
SYSTEM = "/"
"""Without room there slurmd can launch no job, and slurmctld drains for good; so can a worn card make it read-only."""
MOUNTS = "/proc/self/mounts"
MEMORY = "/proc/meminfo"
CPUS = "/sys/devices/system/cpu/online"
CONTROLLERS = "/sys/fs/cgroup/cgroup.controllers"
CONTROLLERS_V1 = "/proc/cgroups"
PROC = "/proc"
REMEMBERED = "/run/slurmstead-health.json"
"""What the last check saw, for root only; see Memory."""

QUIET = "/run/slurmstead-quiet.json"
"""Written by the Prolog of a quiet node: the job that is alone here, and what was changed for it."""
QUIET_PROGRAM = "/usr/local/libexec/slurmstead/quiet"

DEADLINE = 50
"""Seconds for everything; slurmd kills a check after 60."""
LOOK_SECONDS = 20
"""Seconds for a look at what may never answer, such as an NFS server that is gone."""
LOCK_SECONDS = 2
"""Seconds for a check that runs at the same time, because slurmd has just started."""
DROP_IN_SECONDS = 15
"""Seconds for a drop-in, and before that for one of the same name that another check runs."""
DROP_IN_LOOK_SECONDS = 2 * DROP_IN_SECONDS + 2
"""Seconds for both; with what comes after them it is less than DEADLINE."""
SCONTROL_SECONDS = 5
FIELDS = "CPUs:0 ,Memory:0 ,StateComplete:0 ,User:0 ,Timestamp:0 ,Reason:0"
"""Asked of sinfo; without a width each field is as long as it is, and is followed by the space."""
LOST_SECONDS = 300
"""Seconds that processes of a lost job may still have to end by themselves."""
STUCK_SECONDS = 60
"""Seconds after which a slurmstepd that waits for a user has waited long enough."""

PREFIX = "slurmstead: "
LONGEST = 250
"""Characters of a reason."""
LONGEST_LINE = 120
"""Characters of what a drop-in says."""
MIB = 1 << 20


class Node(NamedTuple):
    """What slurmctld says of a node."""

    states: frozenset[str]
    """The state and its flags, such as IDLE and DRAIN."""
    cpus: int
    memory: int
    """Declared, in MiB."""
    reason: str = ""
    author: str = ""
    """Who gave the reason."""
    since: str = ""
    """When it was given."""


class Settings(NamedTuple):
    """What is expected of this node; an empty path is not looked at."""

    node: str
    share: str = ""
    scratch: str = ""
    scratch_is_mounted: bool = False
    max_clock_error: float = 10
    """Seconds."""
    min_free: int = 1024
    """MiB."""


class Action(NamedTuple):
    """What scontrol is told."""

    state: str
    reason: str = ""


class Verdict(NamedTuple):
    """A reason with which Slurm drains a node and never resumes it."""

    authors: tuple[str, ...]
    """slurmd and slurmstepd act as root, slurmctld as slurm."""
    jobs: bool = False
    """Whether it is about a job, of which nothing may be left."""
    trial: bool = False
    """Whether Prolog and Epilog must succeed before the node is resumed."""


class Memory(NamedTuple):
    """What one check tells the next one."""

    fine: str = ""
    """The drain by Slurm whose cause was gone, as its reason and time."""
    kept: str = ""
    """Why such a drain stayed."""
    lost: dict[str, float] = {}
    """When each lost job was first seen, in seconds since boot, by its number."""


# What Slurm says and what to do about it: pure functions.

IN_SERVICE = {"IDLE", "ALLOCATED", "MIXED"}
DRAINED = {"DRAIN", "DRAINED", "DRAINING"}
LEFT_ALONE = ("REBOOT", "POWER", "FAIL", "FUTURE")
"""Beginnings of states in which a resume would undo what a person or slurmctld has under way."""
VERDICTS = {
    "Low RealMemory": Verdict(("slurm",)),
    "Low CPUs": Verdict(("slurm",)),
    "Low socket*core*thread count": Verdict(("slurm",)),
    "Low TmpDisk": Verdict(("slurm",)),
    "SlurmdSpoolDir is full": Verdict(("root", "slurm")),
    "Kill task failed": Verdict(("root", "slurm"), jobs=True),
    "Duplicate jobid": Verdict(("root", "slurm"), jobs=True),
    "Prolog error": Verdict(("slurm",), jobs=True, trial=True),
    "Prolog/Epilog failure": Verdict(("slurm",), jobs=True, trial=True),
    "Epilog error": Verdict(("slurm",), jobs=True, trial=True),
    "batch job complete failure": Verdict(("slurm",), jobs=True, trial=True),
}
"""By how the reason begins (22.05 to 24.11: node_mgr.c, agent.c, job_mgr.c and proc_req.c of slurmctld, mgr.c and
step_terminate_monitor.c of slurmstepd). The same list, with the other reasons, is in workers/reasons.py."""

JOB_GROUP = re.compile(r"^(?!.*/user\.slice/).*/job_(\d+)(?:/|$)", re.MULTILINE)
"""The control group of a job's process, version 1 or 2. Below user.slice, users choose the names."""
STEPD = re.compile(r"slurmstepd: \[(\d+)")
"""How a slurmstepd calls itself."""
REAL_ROOT = re.compile(r"^Uid:\t0\t", re.MULTILINE)
"""The real user ID: a setuid program of a user has root's effective one."""
STEP = re.compile(r"slurmstepd: \[(\d+)\.(\w+)(\+\d+)?")
"""Job, step and component of a slurmstepd."""
STEPS = {"batch": "4294967291", "extern": "4294967292", "interactive": "4294967290"}
"""Numbers of steps that a slurmstepd calls by name (slurm.h)."""
OPENAT = {"x86_64": "257", "aarch64": "56"}
"""Number of openat(2) in /proc/PID/syscall."""
ON_NODES = ("RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "COMPLETING", "SIGNALING", "STAGE_OUT")
"""States of a job that is on its nodes (squeue(1))."""


def parse(line: str) -> Node:
    """Read a line of `scontrol -o show node`; its reason is free text, and other free text may follow.

    >>> parse("CPUTot=8 RealMemory=900 State=IDLE Reason=a [b] c [root@2026-11-20T09:00:00] Comment=x").reason
    'a [b] c'
    """
    before, _, after = line.partition(" Reason=")
    # Backwards, so that the first of two wins: a comment, which is free text, stands behind.
    fields = dict(word.split("=", 1) for word in reversed(before.split()) if "=" in word)
    found = re.match(r"(.*?)(?: \[([^\s@\]]+)@([^\]]+)\].*)?$", after.strip(), re.DOTALL)
    states = {word.rstrip("*~#!%$@^-") for word in fields["State"].split("+")}
    if "*" in fields["State"]:
        states.add("NOT_RESPONDING")
    return Node(
        frozenset(states),
        int(fields["CPUTot"]),
        int(fields["RealMemory"]),
        found[1] if found else "",
        (found[2] or "") if found else "",
        (found[3] or "") if found else "",
    )


def as_scontrol(line: str) -> str:
    """Return a line of sinfo with FIELDS in the words of `scontrol show node`; any other line unchanged.

    >>> as_scontrol("8 900 idle+drain root 2026-11-20T09:00:00 fan [2]")
    'CPUTot=8 RealMemory=900 State=IDLE+DRAIN Reason=fan [2] [root@2026-11-20T09:00:00]'
    >>> as_scontrol("8 900 idle root Unknown none")
    'CPUTot=8 RealMemory=900 State=IDLE'
    """
    fields = line.split(" ", 5)
    if len(fields) < 6 or not fields[0].isdigit() or not fields[1].isdigit():
        return line
    cpus, memory, state, user, when, reason = fields
    shown = f"CPUTot={cpus} RealMemory={memory} State={state.upper()}"
    return shown if when == "Unknown" else f"{shown} Reason={reason} [{user}@{when}]"


def below_declared(node: Node, cpus: int, memory: int) -> list[str]:
    """Say what the node lacks; memory in MiB.

    >>> below_declared(Node(frozenset(), cpus=8, memory=1900), cpus=8, memory=1388)
    ['memory 512 MiB below the declared 1900 MiB']
    """
    causes = []
    if memory < node.memory:
        causes.append(f"memory {node.memory - memory} MiB below the declared {node.memory} MiB")
    if cpus < node.cpus:
        causes.append(f"CPUs {node.cpus - cpus} below the declared {node.cpus}")
    return causes


def in_reason(line: str) -> str:
    """Return a line of a program's output as a part of a reason.

    scontrol prints who gave a reason in brackets after it, and drops a quotation mark at its end.

    >>> in_reason('\\x1b[31mfan\\t[2] is "off"')
    "(31mfan (2) is 'off'"
    """
    plain = line.translate({ord("["): "(", ord("]"): ")", ord('"'): "'"})
    words = "".join(character if character.isprintable() else " " for character in plain).split()
    return " ".join(words)[:LONGEST_LINE]


def drop_in_cause(name: str, status: int, output: bytes) -> str:
    """Say why a drop-in failed, or nothing; `status` is negative after a signal.

    >>> drop_in_cause("gpu", 1, b"checking\\nGPU 0 fell off the bus\\n\\n")
    'gpu: GPU 0 fell off the bus'
    >>> drop_in_cause("gpu", 3, b"")
    'gpu: exited with 3'
    """
    if status == 0:
        return ""
    lines = [line for text in output.decode(errors="replace").splitlines() if (line := in_reason(text))]
    how = f"exited with {status}" if status > 0 else f"killed by signal {-status}"
    return f"{name}: {lines[-1] if lines else how}"


def overdue(name: str) -> str:
    """Say that a drop-in has not ended in time."""
    return f"{name}: not finished after {DROP_IN_SECONDS} s"


def kind(reason: str) -> str:
    """Return a reason without its numbers, which move while the cause stays the same."""
    return re.sub(r"\d+", "", reason)


def verdict(node: Node) -> Verdict | None:
    """Return Slurm's own verdict on a drained node, if its reason is one.

    >>> verdict(Node(frozenset(), 4, 900, "Kill task failed", "root"))
    Verdict(authors=('root', 'slurm'), jobs=True, trial=False)
    """
    known = (known for start, known in VERDICTS.items() if node.reason.startswith(start))
    return next((known for known in known if node.author in known.authors), None)


def decide(node: Node, causes: Iterable[str]) -> Action | None:
    """Return what has to change.

    What another drained, or put down with a reason, is left alone. Slurm's own verdict counts as ours, because Slurm
    would never take the drain back; where it is about a job, the reason stays until the node is resumed.
    """
    if any(state.startswith(LEFT_ALONE) for state in node.states):
        return None
    drained = bool(node.states & DRAINED)
    slurms = verdict(node)
    ours = node.reason.startswith(PREFIX) or slurms is not None
    if drained and not ours:
        return None
    if "DOWN" in node.states and not ours and node.reason not in ("", "Not responding"):
        return None
    reason = PREFIX + "; ".join(causes)
    if len(reason) > LONGEST:
        reason = reason[: LONGEST - 3] + "..."
    if reason != PREFIX:
        if drained and slurms and slurms.jobs:
            return None
        return None if drained and kind(reason) == kind(node.reason) else Action("DRAIN", reason)
    # A node that has not registered since is not known to be good; one with INVALID_REG would be drained again at once.
    if drained and node.states & IN_SERVICE and not node.states & {"NOT_RESPONDING", "INVALID_REG"}:
        return Action("RESUME")
    return None


# What is seen on the node.


def settings() -> Settings:
    """Read the settings, and what the role scratch says of its directory."""
    values: dict[str, str] = {}
    for path in (SETTINGS, SCRATCH):
        try:
            with open(path) as file:
                lines = [line.strip() for line in file]
        except FileNotFoundError:
            continue
        for line in lines:
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                values[key] = value
    return Settings(
        node=os.environ.get("SLURMD_NODENAME") or values.get("node") or os.uname().nodename.partition(".")[0],
        share=values.get("share_path", ""),
        scratch=values.get("scratch_path", ""),
        scratch_is_mounted=values.get("scratch_is_mounted") == "yes",
        max_clock_error=float(values.get("max_clock_error", 10)),
        min_free=int(values.get("min_free", 1024)),
    )


def read(path: str) -> str:
    """Return the text of a file. In those of the kernel, users choose names, which need not be text."""
    with open(path, errors="replace") as file:
        return file.read()


def memory() -> int:
    """Return the memory in MiB, as slurmd reports it."""
    fields = dict(line.split(":", 1) for line in read(MEMORY).splitlines())
    return int(fields["MemTotal"].split()[0]) // 1024


def cpus() -> int:
    """Return the number of CPUs that are online, whatever this process may use.

    The file says `0-3,6`.
    """
    ranges = [word.partition("-") for word in read(CPUS).strip().split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def cgroup_causes() -> list[str]:
    """Name the controllers that Slurm needs and the kernel does not offer; nothing where Slurm uses no cgroups."""
    texts = [read(path) for path in CONFIGURATIONS if os.path.exists(path)]
    # A line such as ProctrackType=proctrack/cgroup.
    if not texts or not re.search(r"^[^#]*/cgroup\b", texts[0], re.MULTILINE):
        return []
    if os.path.exists(CONTROLLERS):
        needed, seen = ["cpu", "cpuset", "memory"], read(CONTROLLERS).split()
    else:
        needed = ["cpuset", "freezer", "memory"]
        rows = [line.split() for line in read(CONTROLLERS_V1).splitlines() if not line.startswith("#")]
        seen = [row[0] for row in rows if row[3] == "1"]
    missing = [name for name in needed if name not in seen]
    return [f"cgroup controller missing: {', '.join(missing)}"] if missing else []


def is_mounted(path: str) -> bool:
    """Whether a file system is mounted there; an automount alone does not count."""
    # Only these separate fields: names may contain other white space.
    entries = [line.split(" ") for line in read(MOUNTS).split("\n") if line]
    return any(where == path and type_ != "autofs" for _, where, type_, *_ in entries)


def is_read_only(path: str) -> bool:
    """Whether a file system accepts no change.

    ext4 still says `rw` after an error that made it refuse them (Linux 6.1.140 and later). Removing an attribute that
    does not exist begins a change and makes none.
    """
    try:
        os.removexattr(f"{path}/.", "user.slurmstead")
    except OSError as error:
        return error.errno == errno.EROFS
    return False


def storage_cause(name: str, path: str, must_be_mounted: bool, min_free: int) -> str:
    """Say why a directory cannot be used, or nothing.

    It is full where less than 1 % and less than `min_free` MiB are free: 1 % of a large disk is still much.
    """
    shown = f"{name} {path}"
    try:
        # Mounts what is mounted on demand. Unlike stat(2), it asks an NFS server each time.
        seen = os.statvfs(f"{path}/.")
    except OSError as error:
        return f"{shown} is not mounted" if must_be_mounted and not is_mounted(path) else f"{shown}: {error.strerror}"
    if must_be_mounted and not is_mounted(path):
        return f"{shown} is not mounted"
    if is_read_only(path):
        return f"{shown} is read-only"
    free = seen.f_bavail * seen.f_frsize
    if free < min(min_free * MIB, seen.f_blocks * seen.f_frsize // 100):
        return f"{shown} is full, {free // MIB} MiB left"
    if seen.f_files and not seen.f_favail:
        return f"{shown} is full, no inode left"
    return ""


def clock_cause(max_error: float) -> str:
    """Say that the clock is off, or nothing; where chrony does not run or knows no time yet nothing is known."""
    try:
        done = run("chronyc", "-c", "-n", "tracking", seconds=LOOK_SECONDS - 1)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    fields = done.stdout.strip().split(",")
    if done.returncode or len(fields) < 14 or fields[-1] == "Not synchronised":
        return ""
    # Column `System time`: the seconds between the clock and what chrony takes for the time.
    error = abs(float(fields[4]))
    return f"clock {error:.0f} s off" if error > max_error else ""


def looks(wanted: Settings) -> dict[str, Callable[[], str]]:
    """Return what may take long to answer, by a name for its lock."""
    found: dict[str, Callable[[], str]] = {"disk": lambda: storage_cause("disk", SYSTEM, False, wanted.min_free)}
    if wanted.share:
        found["share"] = lambda: storage_cause("share", wanted.share, True, wanted.min_free)
    if wanted.scratch:
        mounted = wanted.scratch_is_mounted
        found["scratch"] = lambda: storage_cause("scratch", wanted.scratch, mounted, wanted.min_free)
    found["clock"] = lambda: clock_cause(wanted.max_clock_error)
    return found


class Look(NamedTuple):
    """A look under way."""

    pid: int
    """Of its process, which leads a group of its own."""
    answer: int
    """The pipe that it writes to."""
    until: float
    """When it should have answered, on the monotonic clock."""


def acquire(name: str, seconds: float) -> int | None:
    """Return the descriptor of a lock; None while another process holds it.

    A process that waits for a dead server cannot always be killed. It holds its lock while it lives, so that there is
    at most one for each name.
    """
    lock = os.open(f"{LOCK}{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(lock)
                return None
            time.sleep(0.1)


def begin(look: Callable[[], str], seconds: float) -> Look:
    """Look in a process of its own, which has this time to answer."""
    answer, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            # slurmd waits until no process holds its end of the output.
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.write(write, f"={look()}".encode())
        finally:
            # Also what the look has started.
            os.killpg(os.getpid(), signal.SIGKILL)
    # In both, because either may be the first that needs it.
    os.setpgid(pid, pid)
    os.close(write)
    return Look(pid, answer, time.monotonic() + seconds)


def start(name: str, look: Callable[[], str]) -> Look | None:
    """Begin a look; None while an earlier one of the same name has not ended."""
    lock = acquire(name, LOCK_SECONDS)
    if lock is None:
        return None
    begun = begin(look, LOOK_SECONDS)
    os.close(lock)
    return begun


def finish(look: Look | None) -> str | None:
    """Return the answer of a look; None if it does not come in time."""
    if look is None:
        return None
    ready, _, _ = select.select([look.answer], [], [], max(0.0, look.until - time.monotonic()))
    text = os.read(look.answer, 4096).decode(errors="replace") if ready else ""
    os.close(look.answer)
    if text:
        os.waitpid(look.pid, 0)
        return text[1:]
    # Not waited for: where the kernel waits for a dead server, it may not end.
    os.killpg(look.pid, signal.SIGKILL)
    return None


def drop_ins() -> list[str]:
    """Return the names of the drop-ins; hidden is what the role has not finished writing."""
    try:
        return sorted(name for name in os.listdir(DROP_INS) if not name.startswith("."))
    except FileNotFoundError:
        return []


def run_drop_in(name: str, node: str) -> str:
    """Run a drop-in; returns why it failed, or nothing. It is the look's process that ends what it leaves running."""
    # Whatever the drop-in starts inherits the lock. It is waited for in here, where it delays no other look.
    lock = acquire(f"drop-in-{name}", DROP_IN_SECONDS)
    if lock is None:
        return overdue(name)
    try:
        process = subprocess.Popen(
            [f"{DROP_INS}/{name}"],
            cwd="/",
            env={"LC_ALL": "C.UTF-8", "PATH": PATH, "SLURMD_NODENAME": node},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
        )
    except OSError as error:
        # It may have left the inventory since the directory was read.
        return f"{name}: cannot be run: {error.strerror}" if os.path.lexists(f"{DROP_INS}/{name}") else ""
    assert process.stdout is not None
    output, ended = process.stdout.fileno(), os.pidfd_open(process.pid)
    # Not until the end of the output, which a process in the background may keep open.
    watched, said = [output, ended], b""
    until = time.monotonic() + DROP_IN_SECONDS
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select(watched, [], [], left)
        if output in ready:
            read = os.read(output, 4096)
            said = (said + read)[-4096:]
            if not read:
                watched.remove(output)
        elif ended in ready:
            return drop_in_cause(name, process.wait(), said)
    return overdue(name)


def is_dead(name: str, answered: bool) -> bool:
    """Say whether something has not answered in two checks in a row; a server that is busy for once is not dead."""
    mark = f"{LOCK}{name}.slow"
    was_slow = os.path.exists(mark)
    if answered and was_slow:
        os.unlink(mark)
    elif not answered:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return was_slow and not answered


def slow_causes(wanted: Settings) -> list[str]:
    """Return what is wrong with disks, share and clock, and what the drop-ins say."""
    silent = {
        "share": f"share {wanted.share} does not answer",
        "scratch": f"scratch {wanted.scratch} does not answer",
        "disk": f"disk {SYSTEM} does not answer",
        # A chrony that does not answer says nothing of the clock.
        "clock": "",
    }
    # First, because a look that cannot start keeps the others waiting. All run at once: none takes another's time.
    own = {name: begin(functools.partial(run_drop_in, name, wanted.node), DROP_IN_LOOK_SECONDS) for name in drop_ins()}
    started = {name: start(name, look) for name, look in looks(wanted).items()}
    answers = {name: finish(look) for name, look in started.items()}
    # All workers ask the same server, so one slow answer would drain the whole cluster.
    if wanted.share and not is_dead("share", answers["share"] is not None) and answers["share"] is None:
        log(f"share {wanted.share} is slow, no answer in {LOOK_SECONDS} s: drained if the next check gets none either")
        answers["share"] = ""
    causes = [silent[name] if answer is None else answer for name, answer in answers.items()]
    for name, begun in own.items():
        answer = finish(begun)
        causes.append(overdue(name) if answer is None else answer)
    return [cause for cause in causes if cause]


def configured(key: str) -> str:
    """Return the value of a key in slurm.conf, such as the path of Prolog; empty without one."""
    texts = [read(path) for path in CONFIGURATIONS if os.path.exists(path)]
    found = re.findall(rf"^\s*{key}\s*=\s*(\S+)", texts[0], re.MULTILINE | re.IGNORECASE) if texts else []
    return str(found[-1]) if found else ""


def run_hook(key: str, path: str, node: str) -> str:
    """Run Prolog or Epilog for a job 0 of root; returns why it failed, or nothing."""
    job = {"SLURM_JOB_ID": "0", "SLURM_JOBID": "0", "SLURM_JOB_UID": "0", "SLURM_JOB_USER": "root"}
    try:
        done = subprocess.run(
            [path],
            cwd="/",
            env={"LC_ALL": "C.UTF-8", "PATH": PATH, "SLURMD_NODENAME": node, **job},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        return f"{key} cannot be run: {error.strerror}"
    return drop_in_cause(key, done.returncode, done.stdout)


def trial_cause(node: str) -> str:
    """Try Prolog, then Epilog, which removes what Prolog made; returns why one failed, or nothing."""
    for key in ("Prolog", "Epilog"):
        path = configured(key)
        if path:
            cause = finish(begin(functools.partial(run_hook, key, path, node), DROP_IN_SECONDS))
            if cause != "":
                return overdue(key) if cause is None else cause
    return ""


# What is left of jobs.


def all_pids() -> list[int]:
    """Return the number of each process on this node."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def job_of(pid: int) -> str:
    """Return the number of the job to which a process belongs, or nothing.

    A user's process can call itself anything, but it cannot leave its control group.
    """
    try:
        if found := JOB_GROUP.search(read(f"{PROC}/{pid}/cgroup")):
            return found[1]
        is_roots = REAL_ROOT.search(read(f"{PROC}/{pid}/status"))
        found = STEPD.match(read(f"{PROC}/{pid}/cmdline")) if is_roots else None
    except OSError:
        return ""
    return found[1] if found else ""


def processes() -> dict[str, list[int]]:
    """Return the processes of each job on this node, by its number."""
    found: dict[str, list[int]] = {}
    for pid in all_pids():
        if number := job_of(pid):
            found.setdefault(number, []).append(pid)
    return found


def is_stuck(pid: int) -> bool:
    """Whether a slurmstepd waits in open(2) before its step begins, as with a FIFO as config.json of `--container`.

    slurmd waits for it without a limit, and no job that Slurm cancels ends it (22.05 to 24.11: setup_container of
    slurmstepd, _wait_for_starting_step of slurmd). A wait for a disk or an NFS server is not in state S.
    """
    try:
        found = STEP.match(read(f"{PROC}/{pid}/cmdline"))
        if not found or not REAL_ROOT.search(read(f"{PROC}/{pid}/status")):
            return False
        job, step, part = found.groups("")
        socket = f"_{job}.{STEPS.get(step, step)}{part.replace('+', '.')}"
        # From then on, slurmd can tell it to end its step.
        if any(name.endswith(socket) for name in os.listdir(configured("SlurmdSpoolDir"))):
            return False
        state, *fields = read(f"{PROC}/{pid}/stat").rpartition(")")[2].split()
        called = read(f"{PROC}/{pid}/syscall").split()[0]
    except (OSError, IndexError):
        return False
    age = uptime() - int(fields[18]) / os.sysconf("SC_CLK_TCK")
    return state == "S" and called == OPENAT.get(os.uname().machine) and age >= STUCK_SECONDS


def end_stuck() -> None:
    """End what would block this node until a user opens a FIFO."""
    for pid in all_pids():
        if is_stuck(pid):
            log(f"ending slurmstepd {pid} of job {job_of(pid)}, which waits for a FIFO and cannot begin its step")
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def quiet_job() -> str:
    """Return the number of the job that is alone on this node, or nothing."""
    try:
        return str(json.loads(read(QUIET))["job"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def has_process(number: str) -> bool:
    """Whether a job has a process here. The newest process is asked first, to end soon."""
    return any(job_of(pid) == number for pid in sorted(all_pids(), reverse=True))


def started_by(pids: Iterable[int]) -> list[int]:
    """Return processes and all that they have started, which need not be in a control group."""
    parents: dict[int, list[int]] = {}
    for pid in all_pids():
        try:
            parent = int(read(f"{PROC}/{pid}/stat").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        parents.setdefault(parent, []).append(pid)
    found = list(pids)
    for pid in found:
        found += [child for child in parents.get(pid, []) if child not in found]
    return found


def end(number: str, pids: Iterable[int]) -> None:
    """Kill what is left of a job."""
    for pid in started_by(pid for pid in pids if job_of(pid) == number):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def uptime() -> float:
    """Return the seconds since boot; no correction of the clock moves it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def recall() -> Memory:
    """Return what the last check left."""
    try:
        return Memory(**json.loads(read(REMEMBERED)))
    except (OSError, ValueError, TypeError):
        return Memory()


def remember(new: Memory) -> None:
    """Keep it for the next check, until the next boot."""
    if new == recall():
        return
    path = f"{REMEMBERED}.{os.getpid()}"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(new._asdict(), file)
    os.replace(path, REMEMBERED)


# What is asked of and told to slurmctld.


def run(*command: str, seconds: float, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command; `text` is its input."""
    environment = {"PATH": PATH, **os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        command,
        env=environment,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=seconds,
        check=False,
    )


def ask(*command: str, seconds: float = SCONTROL_SECONDS) -> tuple[bool, str]:
    """Return whether a command of Slurm succeeded, and what it said."""
    try:
        done = run(*command, seconds=seconds)
    except subprocess.TimeoutExpired:
        return False, f"no answer in {seconds:.0f} s"
    except OSError as error:
        return False, f"{command[0]}: {error.strerror}"
    return done.returncode == 0, done.stdout.strip()


def dialogue(*commands: str) -> list[str]:
    """Return the lines that one scontrol prints for several commands, without its prompts."""
    try:
        done = run("scontrol", "--oneliner", seconds=SCONTROL_SECONDS, text="".join(f"{word}\n" for word in commands))
    except subprocess.TimeoutExpired:
        return [f"error: no answer in {SCONTROL_SECONDS} s"]
    return [line.removeprefix("scontrol: ").strip() for line in done.stdout.splitlines()]


def log(text: str) -> None:
    """Tell the system's log, and slurmd, which shows it when the check fails."""
    syslog.openlog("slurmstead-health")
    syslog.syslog(text)
    print(text, flush=True)


def stop(_number: int, _frame: FrameType | None) -> None:
    """End at the deadline, whatever is under way."""
    log(f"not finished after {DEADLINE} s")
    os._exit(1)


def show(node: str) -> Node | str:
    """Return what slurmctld says of a node, or why that is not known.

    sinfo fetches one node if only one is named (src/sinfo/sinfo.c, 22.05 to 24.11), scontrol always all of them. sinfo
    shows no node that is in no partition.
    """
    ok, said = ask("sinfo", "--noheader", "--Node", "--all", "--noconvert", f"--nodes={node}", f"--Format={FIELDS}")
    for line in said.splitlines() if ok else ():
        if (shown := as_scontrol(line)) != line:
            return parse(shown)
    ok, said = ask("scontrol", "--oneliner", "show", "node", node)
    # Warnings of a library are in separate lines.
    lines = [line for line in said.splitlines() if line.startswith("NodeName=")]
    return parse(lines[0]) if ok and lines else said or "no answer"


def lost_jobs(found: Iterable[str], node: str) -> list[str] | None:
    """Return the jobs, of those found on this node, that slurmctld does not have on it; None if it does not say.

    Its answer has no text of users: a line break in a job's name or directory could make it look like another job's.
    """
    lost, until = [], time.monotonic() + SCONTROL_SECONDS
    for number in found:
        wanted = ("--all", "--states=all", "--noheader", f"--jobs={number}", "--format=%A|%T|%N")
        ok, said = ask("squeue", *wanted, seconds=until - time.monotonic())
        # It has forgotten the job.
        if not ok and "Invalid job id" not in said:
            return None
        # Of an array, it shows all tasks.
        jobs = (line.strip().split("|") for line in said.splitlines())
        here = {job[2] for job in jobs if len(job) == 3 and job[0] == number and job[1] in ON_NODES and job[2]}
        if node in here:
            continue
        names = [ask("scontrol", "show", "hostnames", nodes, seconds=until - time.monotonic()) for nodes in here]
        if any(node in said.split() for ok, said in names if ok):
            continue
        if not all(ok for ok, _ in names):
            return None
        lost.append(number)
    return lost


def settle(lost: Iterable[str], found: dict[str, list[int]], before: dict[str, float]) -> dict[str, float]:
    """Report the lost jobs, and end those that were first seen too long ago; returns when each was first seen."""
    now = uptime()
    first = {number: before.get(number, now) for number in lost}
    for number, since in first.items():
        shown = f"{len(found[number])} processes of job {number}, which slurmctld no longer has on this node"
        if number not in before:
            log(f"found {shown}; they are ended in {LOST_SECONDS} s")
        elif now - since >= LOST_SECONDS:
            log(f"ending {shown}")
            end(number, found[number])
    return first


def stays(node: str, seen: Node, lost: list[str] | None, before: Memory) -> Memory:
    """Return whether the cause of Slurm's drain is gone, as the next check must know it."""
    judged = verdict(seen)
    if judged is None or not judged.jobs:
        return Memory()
    if lost is None:
        kept = "slurmctld does not say which jobs it has here"
    elif lost:
        kept = f"processes of job {', '.join(lost)} are left"
    else:
        kept = trial_cause(node) if judged.trial else ""
    if kept and kept != before.kept:
        log(f"{node} stays drained ({seen.reason}): {kept}")
    return Memory(kept=kept) if kept else Memory(fine=f"{seen.reason} {seen.since}")


def resume(node: str, seen: Node) -> tuple[bool, str]:
    """Resume a node; drain it again if an administrator has drained it meanwhile.

    Slurm compares nothing when it resumes a node. So the same scontrol shows the node just before and just after: 22.05
    shows the drain that was removed only before, 24.11 without accounting afterwards, too
    (clusteracct_storage_g_node_up).
    """
    lines = dialogue(f"show node {node}", f"update NodeName={node} State=RESUME", f"show node {node}")
    answers = [parse(line) for line in lines if line.startswith("NodeName=")]
    for shown in answers:
        other = (shown.reason, shown.author, shown.since) != (seen.reason, seen.author, seen.since)
        # What slurmctld itself says, such as `Not responding`, is not a decision.
        if shown.reason and shown.author != "slurm" and other:
            ok, said = ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={shown.reason}")
            return ok, f"{node} stays as {shown.author} drained it meanwhile: {shown.reason}" if ok else said
    errors = [line for line in lines if "error" in line.lower() and not line.startswith("NodeName=")]
    if errors and answers and not answers[-1].states & DRAINED:
        # Slurm refuses to resume a node that is not drained.
        return True, f"{node} was resumed meanwhile"
    return not errors, "; ".join(errors) or report(Action("RESUME"), node, seen)


def report(action: Action, node: str, before: Node) -> str:
    """Say what was done, for the log."""
    if action.state == "RESUME":
        return f"resumed {node}, which was drained for: {before.reason.removeprefix(PREFIX)}"
    return f"drained {node}: {action.reason.removeprefix(PREFIX)}"


def main() -> int:
    """Check the node once. Returns the exit status: 1 where the check could not do its work."""
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(DEADLINE)
    alone = quiet_job()
    if alone and has_process(alone):
        # A check would disturb it.
        return 0
    end_stuck()
    wanted = settings()
    if alone:
        # Between two steps a job has no process; without SMT, CPUs would be missing.
        if lost_jobs([alone], wanted.node) != [alone]:
            return 0
        log(f"job {alone} has left this node quiet")
        return run(QUIET_PROGRAM, "end", alone, seconds=DEADLINE - SCONTROL_SECONDS).returncode
    causes = cgroup_causes() + slow_causes(wanted)
    seen_cpus, seen_memory = cpus(), memory()
    # Before slurmctld is asked, which knows a job before its first process starts.
    found = processes()
    lost = lost_jobs(found, wanted.node)
    # Asked last, so that an administrator's drain in the meantime is seen.
    node = show(wanted.node)
    if isinstance(node, str):
        # Without slurmctld nothing can be drained, and no job starts.
        log(f"slurmctld says nothing of {wanted.node}: {node}")
        return 0
    before = recall()
    now = Memory(lost=before.lost if lost is None else settle(lost, found, before.lost))
    action = decide(node, below_declared(node, seen_cpus, seen_memory) + causes)
    if action == Action("RESUME"):
        now = stays(wanted.node, node, lost, before)._replace(lost=now.lost)
        # Twice in a row: a job that is ending has no process at times.
        if now.kept or (now.fine and now.fine != before.fine):
            action = None
    remember(now)
    if action is None:
        return 0
    if action.state == "RESUME":
        ok, said = resume(wanted.node, node)
    else:
        ok, said = ask("scontrol", "update", f"NodeName={wanted.node}", "State=DRAIN", f"Reason={action.reason}")
        said = report(action, wanted.node, node) if ok else said
    log(said if ok else f"scontrol update NodeName={wanted.node} State={action.state} failed: {said}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
