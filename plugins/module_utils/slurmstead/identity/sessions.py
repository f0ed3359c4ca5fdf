# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The processes of users outside Slurm's jobs, and their end. Slurm ends the processes of its jobs."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import re
import signal
import time
from collections.abc import Collection
from pathlib import Path

PROC = Path("/proc")
LINGER = Path("/var/lib/systemd/linger")
"""A file for each user whose systemd runs without a session (loginctl(1))."""

JOB = re.compile(r"^(?!.*/user\.slice/).*/job_\d+(/|$)", re.MULTILINE)
"""Control group of a job's process. Below user.slice, users choose the names."""

STEP = ("slurmstepd", "0")
"""Name and real user ID of the process above those of a job, where Slurm uses no control groups."""

OWNER, PARENT = 0xB704, 0xB702
"""Requests of ioctl_ns(2): the user who made a user namespace, and the namespace around it."""


def outside_jobs(uids: Collection[int], proc: Path = PROC) -> dict[int, int]:
    """Return the users (numeric) of processes with one of these real, effective or saved user IDs, by process ID.

    A process in a user namespace also belongs to the user who made that: its own ID can be a subordinate one
    (subuid(5)). Left out are the processes of jobs, and zombies, which run nothing.
    """
    parents: dict[int, int] = {}
    programs: dict[int, tuple[str, str]] = {}
    found: dict[int, int] = {}
    wanted = {*uids}
    for directory in proc.glob("[0-9]*"):
        try:
            # Users choose the names in them, which need not be text.
            text, cgroup = ((directory / name).read_text(errors="replace") for name in ("status", "cgroup"))
        except OSError:
            continue
        status = {key: value for key, _, value in (line.partition(":\t") for line in text.split("\n"))}
        pid = int(directory.name)
        own = status["Uid"].split()
        parents[pid], programs[pid] = int(status["PPid"]), (status["Name"], own[0])
        owners = ({int(uid) for uid in own} | makers(directory / "ns/user")) & wanted
        if owners and not JOB.search(cgroup) and not status["State"].startswith("Z"):
            found[pid] = min(owners)

    def below_a_step(pid: int) -> bool:
        while pid in parents:
            if programs[pid] == STEP:
                return True
            pid = parents[pid]
        return False

    return {pid: uid for pid, uid in found.items() if not below_a_step(pid)}


def makers(namespace: Path) -> set[int]:
    """Return the users who made a user namespace and those around it; none if it has ended."""
    found = set()
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        place = os.open(namespace, os.O_RDONLY)
        while True:  # Until the first one, which has no other around it.
            opened.callback(os.close, place)
            owner = array.array("I", [0])
            fcntl.ioctl(place, OWNER, owner)
            found.add(owner[0])
            place = fcntl.ioctl(place, PARENT)
    return found


def end(uids: Collection[int], seconds: float = 10.0) -> dict[int, int]:
    """Kill the processes of users outside jobs, again until none is left or the time is up; return those left.

    A process that waits for a lost file server does not end.
    """
    deadline = time.monotonic() + seconds
    while found := outside_jobs(uids):
        # Stopped first, so that none starts another one meanwhile.
        for word in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                try:
                    os.kill(pid, word)
                except ProcessLookupError:
                    pass
        if time.monotonic() > deadline:
            return found
        time.sleep(0.1)
    return {}
