"""Every core of an RK3588 is used, and each job runs on the cores that Slurm gave it.

The board is an emulated one: its device tree has the CPUs of an RK3588, so that the kernel and hwloc see 4 + 2 + 2.
"""

from __future__ import annotations

from typing import Any

import pytest

EVERY_CPU = frozenset(range(8))

pytestmark = [
    pytest.mark.parametrize("core_gres", [False, True], ids=["one socket", "fast and slow"], indirect=True),
    pytest.mark.usefixtures("core_gres"),
]


def test_all_cpus_are_offered(lab: Any, board: str) -> None:
    assert lab.user(f"sinfo --noheader --nodes={board} --format='%c %T'") == "8 idle"


def test_eight_tasks_have_a_cpu_each(run: Any) -> None:
    seen = run("--ntasks=8")

    assert sorted(seen, key=min) == [frozenset({cpu}) for cpu in range(8)]


def test_one_task_can_have_all_cpus(run: Any) -> None:
    assert run("--ntasks=1 --cpus-per-task=8") == [EVERY_CPU]


def test_a_second_job_runs_on_the_cpus_that_the_first_one_left(run: Any, hold: Any) -> None:
    held = hold("--ntasks=1 --cpus-per-task=6")
    assert len(held) == 6

    assert run("--ntasks=1 --cpus-per-task=2") == [EVERY_CPU - held]


def test_a_task_cannot_leave_its_cpus(run: Any) -> None:
    (seen,) = run("--ntasks=1 --cpus-per-task=2", "taskset --cpu-list --pid 0-7 \\$\\$ >/dev/null; ")

    assert len(seen) == 2
