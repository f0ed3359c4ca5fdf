"""Every core of an RK3588 is used, and each job runs on the cores that Slurm gave it.

The board is an emulated one: its device tree has the CPUs of an RK3588, so that the kernel and hwloc see 4 + 2 + 2.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

EVERY_CPU = frozenset(range(8))

SHOW = "taskset --cpu-list --pid \\$\\$"
"""Says `pid 7's current affinity list: 0,2-3`."""


def cpus(text: str) -> list[frozenset[int]]:
    """Return the CPUs of each task that said where it may run, and print them.

    >>> cpus("pid 7's current affinity list: 0,2-3")
    [frozenset({0, 2, 3})]
    """
    found = []
    for listed in re.findall(r"affinity list: ([0-9,-]+)", text):
        ranges = [word.partition("-") for word in listed.split(",")]
        found.append(frozenset(cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)))
    print([sorted(task) for task in found])
    return found


@pytest.fixture(scope="module")
def board(lab: Any) -> str:
    """The worker that imitates a board, idle."""
    (name,) = (name for name in lab.workers if lab.variables[name].get("lab_board"))
    lab.wait_until_idle(180)
    return str(name)


@pytest.fixture
def run(lab: Any, board: str) -> Any:
    """Run tasks on the board and return the CPUs of each."""
    return lambda options: cpus(lab.user(f'srun --nodelist={board} {options} sh -c "{SHOW}"'))


@pytest.fixture
def hold(lab: Any, board: str) -> Iterator[Any]:
    """Let jobs hold CPUs of the board until the test ends; each returns the CPUs that it holds."""
    jobs = []

    def start(options: str) -> frozenset[int]:
        script = f'srun sh -c "{SHOW}; sleep 300"'
        job = lab.user(
            f"sbatch --parsable --nodelist={board} --output=held-%j {options} --wrap='{script}'".replace("\\", "")
        )
        jobs.append(job)
        deadline = time.monotonic() + 60
        while not (said := lab.user(f"cat held-{job} 2>/dev/null || true")):
            assert time.monotonic() < deadline, lab.user("squeue")
            time.sleep(1)
        (held,) = cpus(said)
        return held

    yield start
    lab.user(f"scancel {' '.join(jobs)}; rm -f held-*")
    lab.wait_until_idle(120)


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


def test_a_task_cannot_leave_its_cpus(lab: Any, board: str) -> None:
    script = f"taskset --cpu-list --pid 0-7 \\$\\$ >/dev/null; {SHOW}"
    (seen,) = cpus(lab.user(f'srun --nodelist={board} --ntasks=1 --cpus-per-task=2 sh -c "{script}"'))

    assert len(seen) == 2
