"""A machine loses its power while packages are upgraded: the next upgrade completes it, and no job is lost.

STEAD_LAB=NAME pytest tests/lab/interrupted/test_upgrade.py --first-seed=1 --seeds=10
"""

from __future__ import annotations

from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS
from tests.lab.faults.canaries import canaries
from tests.lab.faults.cluster import failures
from tests.lab.faults.fault import recover
from tests.lab.faults.strike import Strike, choose, is_good_or_names
from tests.lab.faults.trials import trials
from tests.lab.operations.test_upgrade import RESTORE, USE, installed, offer, versions

__all__ = ["installed", "offer", "versions"]

pytestmark = pytest.mark.kernel  # What a container has not written to its disk survives it.

CUT = "power cut at a random task of an upgrade"
UPGRADE = str(PLAYBOOKS / "upgrade-cluster.yml")


@pytest.fixture(scope="module")
def steps(lab: Any, versions: Any) -> list[str]:
    """The tasks of an upgrade of all machines, in their order."""
    found: list[str] = []
    lab.everywhere(lambda name: lab.root(name, USE))
    run = lab.ansible(UPGRADE, began=lambda task, _pid: found.append(task), seconds=1500)
    assert run.code == 0, failures(run)
    return found


def test_a_machine_that_loses_power_is_upgraded_by_the_next_run(
    lab: Any, steps: list[str], versions: dict[str, str], offer: Any, installed: Any, seed: int
) -> None:
    lab.everywhere(lambda name: lab.root(name, RESTORE, seconds=500))
    lab.wait_until_idle(240)
    offer()
    turn, name = choose(CUT, seed, steps, lab.names)
    strike = Strike(turn, lambda _pid: lab.cut_power(name))
    with canaries(lab) as alive, trials(lab, CUT, seed=seed) as noted:
        try:
            run = lab.ansible(UPGRADE, began=strike, seconds=1500)
        finally:
            lab.boot(name)
        noted.over()
        assert strike.task, f"the run ended before task {turn}: {failures(run)}"
        assert is_good_or_names(run, name), f"{strike.task}: nobody said that {name} is off: {failures(run)}"
        again = lab.ansible(UPGRADE, seconds=1500)
        assert again.code == 0, failures(again)
        newer = {f"{version}+stead1" for version in versions.values()}
        assert all(found <= newer for found in installed().values()), installed()
        recover(lab, noted, alive, name)
