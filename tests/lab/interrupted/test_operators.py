"""A second person begins a run while one is at work: they are told by whom, and the first run ends well.

STEAD_LAB=NAME pytest tests/lab/interrupted/test_operators.py --first-seed=1 --seeds=5
"""

from __future__ import annotations

import getpass
from typing import Any

from tests.lab.faults.canaries import canaries
from tests.lab.faults.cluster import failures
from tests.lab.faults.strike import Strike, choose, recover, struck
from tests.lab.faults.trials import trials
from tests.lab.run import Run

TWO = "two operators at once"

LOCK = "Lock the cluster for this run"


def test_the_second_operator_is_refused_and_the_first_one_does_not_notice(
    lab: Any, tasks: list[str], seed: int
) -> None:
    locked = tasks.index(LOCK) + 1
    turn, _ = choose(TWO, seed, tasks[locked:], lab.names)
    others: list[Run] = []
    strike = Strike(locked + turn, lambda _pid: others.append(lab.ansible(seconds=300)))
    with canaries(lab) as alive, trials(lab, TWO, seed=seed) as noted:
        run = struck(lab, strike)
        noted.over()
        (other,) = others
        assert run.code == 0, failures(run)
        assert other.code != 0
        assert getpass.getuser() in other.output
        assert other.changed == {}
        recover(lab, noted, alive)
