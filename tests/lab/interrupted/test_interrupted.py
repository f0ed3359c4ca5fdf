"""site.yml is ended, or cut off from a machine, in the middle of its work: the next run does the rest.

STEAD_LAB=NAME pytest tests/lab/interrupted/test_interrupted.py --first-seed=1 --seeds=5
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.lab import machines as stead_lab
from tests.lab.faults.canaries import canaries
from tests.lab.faults.cluster import failures
from tests.lab.faults.strike import Strike, choose, is_good_or_names, recover, struck
from tests.lab.faults.trials import trials

KILLED = "kill -9 of ansible at a random task of site.yml"
CUT = "ssh cut at a random task of site.yml"
FROZEN = "a worker frozen at a random task of site.yml"

CUT_SECONDS, FROZEN_SECONDS = 60, 120

# All ssh to a machine comes from the gateway of its uplink. Its own network to the other machines goes on.
SILENCE = """
gateway=$(ip -4 route show default | sed -n 's/.* via \\([0-9.]*\\).*/\\1/p;q')
test -n "$gateway"
systemd-run --quiet --collect --unit=slurmstead-cut sh -c "
  sleep 5
  ip route add blackhole $gateway
  sleep {seconds}
  ip route del blackhole $gateway"
"""
HEARD = '! systemctl --quiet is-active slurmstead-cut && test -z "$(ip route show type blackhole)"'


def test_ansible_that_is_killed_leaves_nothing_that_the_next_run_does_not_put_right(
    lab: Any, tasks: list[str], seed: int
) -> None:
    turn, _ = choose(KILLED, seed, tasks, lab.names)
    with canaries(lab) as alive, trials(lab, KILLED, seed=seed) as noted:
        run = struck(lab, Strike(turn, lambda pid: os.kill(pid, signal.SIGKILL)))
        noted.over()
        assert run.code == -signal.SIGKILL, failures(run)
        recover(lab, noted, alive)


def test_a_cut_connection_is_outlived_or_named(lab: Any, tasks: list[str], seed: int) -> None:
    turn, name = choose(CUT, seed, tasks, lab.names)
    silence = SILENCE.format(seconds=CUT_SECONDS)
    strike = Strike(turn, lambda _pid: lab.root(name, silence))
    with canaries(lab) as alive, trials(lab, CUT, seed=seed) as noted:
        try:
            run = struck(lab, strike)
        finally:
            lab.insist(name, HEARD, 300)
        noted.over()
        assert is_good_or_names(run, name), f"{strike.task}: nobody named {name}: {failures(run)}"
        recover(lab, noted, alive)


@contextlib.contextmanager
def _thaw(pid: int) -> Iterator[threading.Timer]:
    """A timer that lets a process go on after a while; it goes on in the end in any case."""
    timer = threading.Timer(FROZEN_SECONDS, os.kill, (pid, signal.SIGCONT))
    try:
        yield timer
        if timer.is_alive():
            timer.join()
    finally:
        timer.cancel()
        os.kill(pid, signal.SIGCONT)


@pytest.mark.kernel  # A container is more than one process.
def test_a_frozen_worker_is_outlived_or_named(lab: Any, tasks: list[str], seed: int) -> None:
    turn, name = choose(FROZEN, seed, tasks, lab.workers)
    pid = stead_lab.pids(lab.directory)[name]
    assert pid, f"{name} does not run"
    with canaries(lab) as alive, trials(lab, FROZEN, seed=seed) as noted:
        with _thaw(pid) as timer:

            def freeze(_pid: int) -> None:
                os.kill(pid, signal.SIGSTOP)
                timer.start()

            strike = Strike(turn, freeze)
            run = struck(lab, strike)
        noted.over()
        assert is_good_or_names(run, name), f"{strike.task}: nobody named {name}: {failures(run)}"
        recover(lab, noted, alive)
