# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for who may be on which machine, and how much of it they get."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import Violation, shown

_MEMORY = re.compile(r"(?P<percent>[1-9]\d?|100)%|(?P<mebibytes>[1-9]\d*)M|[1-9]\d*[GT]")
LEAST = {"percent": 5, "mebibytes": 256}
"""A login needs about 50 MiB. With less, Ansible would be locked out, too."""

SHORTEST = 30
"""Seconds that a machine may need to answer a new connection."""


def deadline_leaves_time_to_answer(login_deadline: int) -> Iterator[Violation]:
    """A machine can accept a login before its previous PAM files are restored."""
    if login_deadline < SHORTEST:
        yield (
            "login_deadline",
            f"is {login_deadline}, too short for a login to a slow machine",
            f"Write at least {SHORTEST} (seconds)",
        )


def memory_is_a_size(login_user_memory: str) -> Iterator[Violation]:
    """A user's memory is a size or a percentage, as systemd reads it."""
    size = _MEMORY.fullmatch(login_user_memory)
    if login_user_memory and not size:
        yield (
            "login_user_memory",
            f"is {shown(login_user_memory)}, which is not a size",
            "Write a percentage of the machine's memory, as in 25%, or a size, as in 4G",
        )
    elif size and any(size[unit] and int(size[unit]) < least for unit, least in LEAST.items()):
        wrong = f"is {login_user_memory}, with which no user could log in, nor Ansible"
        yield "login_user_memory", wrong, "Write at least 5% or 256M"


def cpus_are_possible(login_user_cpus: int) -> Iterator[Violation]:
    """A number of CPUs is not negative."""
    if login_user_cpus < 0:
        yield "login_user_cpus", f"is {login_user_cpus}", "Write a number of CPUs; 0 does not limit them"


def jobs_contain_their_processes(login_only_with_jobs: bool, slurm_config: Mapping[str, Any]) -> Iterator[Violation]:
    """Without a container for each job, ssh is refused to all; without control groups, processes outlive their job."""
    if not login_only_with_jobs:
        return
    flags = slurm_config.get("PrologFlags", "Contain") or ""
    words = flags if isinstance(flags, list) else str(flags).split(",")
    # X11 includes it (slurm.conf(5)).
    if not {"contain", "x11"} & {str(word).strip().lower() for word in words}:
        yield (
            "slurm_config",
            f"PrologFlags is {shown(flags)}, but login_only_with_jobs is true",
            "Add Contain to it",
        )
    kind = slurm_config.get("ProctrackType", "proctrack/cgroup")
    if kind != "proctrack/cgroup":
        yield (
            "slurm_config",
            f"ProctrackType is {shown(kind)}, but login_only_with_jobs is true",
            "Remove it: only proctrack/cgroup ends all processes of a job",
        )
    seconds = slurm_config.get("GetEnvTimeout", 0)
    if str(seconds) != "0":
        yield (
            "slurm_config",
            f"GetEnvTimeout is {shown(seconds)}, but login_only_with_jobs is true",
            "Remove it: slurmd would run users' profiles outside their jobs",
        )
