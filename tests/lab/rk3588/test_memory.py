"""A board that comes back with less memory takes no jobs until it has it again."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

INTERVAL = 60
"""HealthCheckInterval of the role slurm."""
LESS = 768
"""MiB."""


def wait_for(lab: Any, worker: str, state: str, seconds: float) -> str:
    """Wait until a worker is in a state; returns the reason that Slurm has."""
    started = time.monotonic()
    while True:
        said = lab.root(lab.control, f"sinfo --noheader --nodes={worker} --format='%T %E'")
        seen, _, reason = said.partition(" ")
        if seen == state:
            return str(reason)
        assert time.monotonic() - started < seconds, f"{worker} is not {state} after {seconds:.0f} s: {said}"
        time.sleep(2)


@pytest.fixture
def drained(lab: Any, board: str) -> Iterator[str]:
    """Another worker, which a person drained."""
    (name,) = (name for name in lab.workers if name != board)
    lab.root(lab.control, f"scontrol update nodename={name} state=drain reason=fan")
    yield name
    lab.root(lab.control, f"scontrol update nodename={name} state=resume")
    lab.wait_until_idle(2 * INTERVAL)


def boot(lab: Any, name: str, **settings: Any) -> None:
    """Start a machine, and wait for its slurmd, which waits for the clock and for the share."""
    lab.boot(name, **settings)
    lab.root(name, "until systemctl is-active --quiet slurmd; do sleep 1; done", seconds=300)


def test_less_memory_drains_until_it_is_back(lab: Any, board: str, drained: str) -> None:
    lab.cut_power(board)
    boot(lab, board, lab_memory=LESS)
    reason = wait_for(lab, board, "drained", 2 * INTERVAL)
    assert re.fullmatch(r"slurmstead: memory \d+ MiB below the declared \d+ MiB", reason)

    lab.cut_power(board)
    boot(lab, board)
    wait_for(lab, board, "idle", 2 * INTERVAL)
    assert wait_for(lab, drained, "drained", 0) == "fan"

    assert lab.ansible("--tags", "slurm").code == 0
    assert wait_for(lab, drained, "drained", 0) == "fan"
