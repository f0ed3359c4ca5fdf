"""A machine loses its power while site.yml works on it: the run says so, and the next one does the rest.

STEAD_LAB=NAME pytest tests/lab/interrupted/test_power.py --first-seed=1 --seeds=5
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.faults.canaries import canaries
from tests.lab.faults.cluster import failures
from tests.lab.faults.strike import Strike, choose, is_good_or_names, recover, struck
from tests.lab.faults.trials import trials
from tests.lab.run import Run

pytestmark = pytest.mark.kernel  # What a container has not written to its disk survives it.

WORKER = "a worker loses power at a random task of site.yml"
CONTROL = "control loses power at a random task of site.yml"

CHECKS = ("scratch : probe", "nfs_server : probe", "machine_check : ")
"""Tasks of which a failure stops the run for all, before anything is changed."""


def without_power(lab: Any, strike: Strike, name: str) -> Run:
    """Return the run in which a machine lost its power; the machine is back."""
    try:
        return struck(lab, strike)
    finally:
        lab.boot(name)


def unfinished(run: Run, others: list[str]) -> list[str]:
    """Return those of the other machines that failed as well."""
    counts = {name: run.recap.get(name, {}) for name in others}
    return [name for name in others if counts[name].get("failed") or counts[name].get("unreachable")]


def test_workers_that_lose_power_stop_no_other_machine_and_are_completed_afterwards(
    lab: Any, tasks: list[str], seed: int
) -> None:
    turn, name = choose(WORKER, seed, tasks, lab.workers)
    strike = Strike(turn, lambda _pid: lab.cut_power(name))
    with canaries(lab) as alive, trials(lab, WORKER, seed=seed) as noted:
        run = without_power(lab, strike, name)
        noted.over()
        assert is_good_or_names(run, name), f"{strike.task}: nobody said that {name} is off: {failures(run)}"
        assert unfinished(run, [other for other in lab.names if other != name]) == [], failures(run)
        went_on = "slurmctld : Publish the configuration of the cluster" in run.output
        assert went_on or strike.task.startswith(CHECKS), f"the run ended early after {strike.task}: {failures(run)}"
        recover(lab, noted, alive, name)


def test_control_that_loses_power_is_named_and_no_job_is_lost(lab: Any, tasks: list[str], seed: int) -> None:
    turn, _ = choose(CONTROL, seed, tasks, [lab.control])
    strike = Strike(turn, lambda _pid: lab.cut_power(lab.control))
    with canaries(lab) as alive, trials(lab, CONTROL, seed=seed) as noted:
        run = without_power(lab, strike, lab.control)
        noted.over()
        assert is_good_or_names(run, lab.control), f"{strike.task}: nobody said that it is off: {failures(run)}"
        recover(lab, noted, alive, lab.control)
