# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The processes of users outside Slurm's jobs, and their end. Slurm ends the processes of its jobs."""

from __future__ import annotations

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


def outside_jobs(uids: Collection[int], proc: Path = PROC) -> dict[int, int]:
    """Return the users (numeric) of processes with one of these real, effective or saved user IDs, by process ID.

    Left out are the processes of jobs, and zombies, which run nothing.
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
        owners = {int(uid) for uid in own} & wanted
        if owners and not JOB.search(cgroup) and not status["State"].startswith("Z"):
            found[pid] = min(owners)

    def below_a_step(pid: int) -> bool:
        while pid in parents:
            if programs[pid] == STEP:
                return True
            pid = parents[pid]
        return False

    return {pid: uid for pid, uid in found.items() if not below_a_step(pid)}


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
