"""What tests of the board share: jobs on it, and the CPUs on which they run."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

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


@pytest.fixture(scope="session")
def core_gres(lab: Any, request: pytest.FixtureRequest) -> bool:
    """Whether jobs can ask for a kind of core; the tests of a module say it, and the cluster is configured so."""
    run = lab.ansible("--tags", "slurm", "--extra-vars", json.dumps({"slurm_core_gres": request.param}))
    assert run.code == 0, run.output
    lab.wait_until_idle(180)
    return bool(request.param)


@pytest.fixture(scope="session")
def board(lab: Any) -> str:
    """The worker that imitates a board."""
    (name,) = (name for name in lab.workers if lab.variables[name].get("lab_board"))
    return str(name)


@pytest.fixture
def run(lab: Any, board: str) -> Any:
    """Run tasks on the board, a shell command before each says its CPUs, and return these."""
    return lambda options, before="": cpus(lab.user(f'srun --nodelist={board} {options} sh -c "{before}{SHOW}"'))


@pytest.fixture
def hold(lab: Any, board: str) -> Iterator[Any]:
    """Let jobs hold CPUs of the board until the test ends; each returns the CPUs that it holds."""
    jobs = []

    def start(options: str) -> frozenset[int]:
        script = "taskset --cpu-list --pid $$; sleep 300"
        job = lab.user(f"sbatch --parsable --nodelist={board} --output=held-%j {options} --wrap='{script}'")
        jobs.append(job)
        deadline = time.monotonic() + 180
        while not (said := lab.user(f"cat held-{job} 2>/dev/null || true")):
            assert time.monotonic() < deadline, lab.user("squeue")
            time.sleep(1)
        (held,) = cpus(said)
        return held

    yield start
    lab.user(f"scancel {' '.join(jobs)}; rm -f held-*")
    lab.wait_until_idle(120)
