# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The jobs that have processes on this machine, and those that slurmctld has on its nodes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.doctor.facts.services import started
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.answers import seconds
from ansible.module_utils.slurmstead.slurm.hostlist import expand
from ansible.module_utils.slurmstead.slurm.jobs import ENDED

PROC = Path("/proc")

STEPD = re.compile(r"slurmstepd: \[(\d+)")
"""How a slurmstepd calls itself. `scontrol listpids` would wait for one that does not answer."""

REAL_ROOT = re.compile(r"^Uid:\t0\t", re.MULTILINE)
"""The real user ID in status: a setuid program of a user has root's effective one."""

STEPS = ("squeue", "--all", "--steps", "--noheader", "--format=%i|%N|%S")
JOBS = ("squeue", "--all", "--states=all", "--noheader", "--format=%A|%F|%K|%T|%u")


def here() -> dict[str, float]:
    """Return the age in seconds of the newest slurmstepd of each job on this machine, by number of job."""
    now, found = time.time(), dict[str, float]()
    for path in PROC.glob("[0-9]*"):
        try:
            is_roots = REAL_ROOT.search((path / "status").read_text(errors="replace"))
            named = STEPD.match((path / "cmdline").read_text(errors="replace")) if is_roots else None
        except OSError:
            continue
        if named:
            age = now - started(int(path.name))
            found[named[1]] = min(age, found.get(named[1], age))
    return found


def known() -> dict[str, Any]:
    """Return the numbers of all `jobs` that slurmctld knows, its `steps` and `users`; nothing if it does not answer.

    `steps` has the nodes of each job's steps, and the age in seconds of the newest, by number of job; `users` are
    the names of those whose jobs have not ended.
    """
    code, out, _ = run(*STEPS)
    other, jobs, _ = run(*JOBS)
    if code or other:
        return {}
    rows = [row for row in (line.strip().split("|") for line in jobs.splitlines()) if len(row) == 5]
    tasks = {f"{array}_{task}": number for number, array, task, _, _ in rows}
    return {
        "jobs": sorted({number for number, *_ in rows}),
        "steps": steps(out, tasks, time.time()),
        "users": sorted({user for *_, state, user in rows if state not in ENDED}),
    }


def steps(text: str, tasks: Mapping[str, str], now: float) -> dict[str, dict[str, Any]]:
    """Return the steps in the output of squeue in the format of STEPS.

    :param tasks: the number of each task of an array, by its name ARRAY_TASK, with which squeue names its steps

    >>> now = seconds("2026-11-20T09:00:10")
    >>> steps("7.0|n[1-2]|2026-11-20T09:00:00\\n7.batch|n1|2026-11-20T08:00:00", {}, now)
    {'7': {'nodes': ['n1', 'n2'], 'age': 10.0}}
    >>> steps("7_2.batch|n1|2026-11-20T09:00:00", {"7_2": "9"}, now)
    {'9': {'nodes': ['n1'], 'age': 10.0}}
    """
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        name, nodes, start = (line.strip().split("|") + ["", ""])[:3]
        job = re.match(r"\d+(_\d+)?", name)
        if job and nodes:
            one = found.setdefault(
                tasks.get(job[0], job[0].partition("_")[0]), {"nodes": [], "age": now - seconds(start)}
            )
            # The newest, because a step that is starting has no process yet.
            one["age"] = min(one["age"], now - seconds(start))
            one["nodes"] = sorted({*one["nodes"], *expand(nodes)})
    return found
