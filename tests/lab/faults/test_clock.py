"""A clock jumps an hour under running jobs: chrony puts it right, and a run before that names it.

STEAD_LAB=NAME pytest tests/lab/faults/test_clock.py
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.lab.faults.canaries import canaries
from tests.lab.faults.fault import NOTHING_FAILED, Fault, recover, survive
from tests.lab.faults.trials import trials

pytestmark = pytest.mark.kernel  # A container has no clock of its own.

TOLD = rf"clock is 3[56]\d\d s (ahead|behind)|{NOTHING_FAILED}"

# Column `System time`: the seconds between the clock and what chrony takes for the time.
RIGHT = """
for _ in $(seq 200); do
  chronyc -c -n tracking | awk -F, '{ exit !($5 < 1 && $14 == "Normal") }' && break
  sleep 3
done
"""

NEXT_PING = 110
"""Seconds; a little more than a third of SlurmdTimeout."""


def test_a_worker_whose_clock_jumps_back_has_the_right_time_again(lab: Any) -> None:
    fault = Fault("clock of a worker an hour back", lab.workers[-1], "date -s '-1 hour'", RIGHT, TOLD)

    assert survive(lab, [fault]) == {}


def test_the_workers_follow_the_clock_of_control(lab: Any) -> None:
    fault = Fault("clock of control an hour back", lab.control, "date -s '-1 hour'", "date -s '+1 hour'", TOLD)

    assert survive(lab, [fault]) == {}


def test_slurmctld_does_not_take_a_jump_of_its_clock_for_silence(lab: Any) -> None:
    with canaries(lab) as alive, trials(lab, "clock of control an hour ahead") as noted:
        try:
            lab.everywhere(lambda name: lab.root(name, "systemctl stop chrony"), lab.workers)
            lab.root(lab.control, "date -s '+1 hour'")
            lab.insist(lab.control, "sinfo --noheader --format=%T | grep -q '[*]'", 240)  # A ping has failed.
            lab.everywhere(lambda name: lab.insist(name, f"systemctl start chrony; {RIGHT}"), lab.workers)
            noted.over()
            time.sleep(NEXT_PING)  # Before site.yml makes the workers register.
            recover(lab, noted, alive)
            assert noted.lost == {}
        finally:
            lab.root(lab.control, "date -s '-1 hour'")
            lab.everywhere(lambda name: lab.insist(name, f"systemctl start chrony; {RIGHT}"), lab.workers)
