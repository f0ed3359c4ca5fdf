"""A command while machines sleep: they are woken for it, or wait until it has been done on them. With a real Slurm."""

from __future__ import annotations

import pytest

from tests.native.power.conftest import Rack

pytestmark = pytest.mark.slow


def asleep(rack: Rack) -> None:
    """Let node2 and node3 sleep, and nobody later."""
    rack.cluster.run("scontrol", "update", "nodename=node1", "state=drain", "reason=test")
    rack.until_asleep(["node2", "node3"], 120)
    rack.cluster.run("scontrol", "update", "nodename=node1", "state=resume")
    rack.configure(idle=10000)


def test_no_job_wakes_a_machine_that_missed_a_command_and_later_it_runs_there(rack: Rack) -> None:
    asleep(rack)
    found = rack.miss("begin", "up")
    job = rack.submit("--nodelist=node2", "--wrap=true")
    elsewhere = rack.submit("--wrap=true")
    rack.until(lambda: rack.has_ended(elsewhere), 60, "node1 takes jobs")
    during = set(rack.on)
    rack.press("node2")
    rack.until(lambda: rack.state("node2") == "IDLE+DRAIN", 60, "node2 registered, and is still out of service")
    waits = not rack.has_ended(job)
    rack.miss("done", "up")
    rack.until(lambda: rack.has_ended(job), 60, "the job ran on node2")

    assert (found["asleep"], found["noted"]) == (["node2", "node3"], True)
    assert during == {"node1"}
    assert waits


def test_machines_are_woken_for_a_command_also_if_they_missed_an_earlier_one(rack: Rack) -> None:
    asleep(rack)
    rack.miss("begin", "upgrade")
    found = rack.miss("wake", "up")
    before = rack.state("node3")
    rack.miss("done", "up")
    still = rack.state("node3")
    rack.miss("done", "upgrade")

    assert found["woken"] == ["node2", "node3"]
    assert rack.on == {"node1", "node2", "node3"}
    assert (before, still) == ("IDLE+DRAIN", "IDLE+DRAIN")
    assert rack.state("node3") == "IDLE"


def test_a_machine_that_is_just_going_to_sleep_is_noted_too(rack: Rack) -> None:
    rack.until(lambda: "POWERING_DOWN" in rack.state("node2"), 60, "node2 goes down")
    rack.miss("begin", "up")
    rack.until_asleep(["node2"])
    shown = rack.cluster.run("sinfo", "--noheader", "--nodes=node2", "--format=%E")

    assert "DRAIN" in rack.state("node2")
    assert "missed while asleep: up" in shown
