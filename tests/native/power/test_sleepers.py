"""A command while machines sleep: they are woken for it, or wait until it has been done on them. With a real Slurm."""

from __future__ import annotations

import pytest

from tests.native.power.conftest import PLACE, Rack

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
    # slurmctld asks a node that it takes back whether it answers.
    rack.cluster.wait_for(lambda: rack.state("node3") == "IDLE", 30, "node3 takes jobs")


def test_a_machine_that_is_just_going_to_sleep_is_noted_too(rack: Rack) -> None:
    rack.until(lambda: "POWERING_DOWN" in rack.state("node2"), 60, "node2 goes down")
    # A drained machine is not told to shut down.
    rack.until(lambda: '"node2", "what": "shut down"' in rack.log(), 30, "node2 was told to shut down")
    rack.miss("begin", "up")
    rack.until_asleep(["node2"])
    shown = rack.cluster.run("sinfo", "--noheader", "--nodes=node2", "--format=%E")

    assert "DRAIN" in rack.state("node2")
    assert "missed while asleep: up" in shown


def test_a_machine_that_is_just_going_to_sleep_is_woken_when_it_is_down(rack: Rack) -> None:
    rack.until(lambda: "POWERING_DOWN" in rack.state("node2"), 60, "node2 goes down")
    found = rack.miss("wake", "up", ["node2"])

    assert (found["woken"], found["asleep"]) == (["node2"], [])


def shown(rack: Rack, name: str) -> tuple[str, str]:
    """Return state and reason of a node; 22.05 also marks that it does not respond."""
    reason = rack.cluster.run("sinfo", "--noheader", f"--nodes={name}", "--format=%E")
    return rack.state(name).replace("+NOT_RESPONDING", ""), reason.strip()


def test_what_a_person_drained_while_it_slept_stays_so_whether_it_wakes_or_not(rack: Rack) -> None:
    asleep(rack)
    rack.cluster.run("scontrol", "update", "nodename=node2,node3", "state=drain", "reason=bad DIMM")
    rack.look()
    found = rack.miss("wake", "up")
    on = set(rack.on)
    rack.cluster.run("touch", f"{PLACE}/node2.dead")
    rack.cluster.run("scontrol", "update", "nodename=node2", "state=power_up")
    rack.press("node3")
    rack.until(lambda: "POWERING_UP" in rack.state("node2"), 30, "node2 is waited for")
    rack.until(lambda: "POWERED_DOWN" in rack.state("node2") and "DRAIN" in rack.state("node2"), 60, "given up")
    failed = shown(rack, "node2")
    rack.until(lambda: "POWERED_DOWN" not in rack.state("node3"), 60, "node3 registered")
    rack.look()
    registered = shown(rack, "node3")
    rack.cluster.run("rm", f"{PLACE}/node2.dead")
    rack.press("node2")
    rack.until(lambda: "POWERED_DOWN" not in rack.state("node2"), 60, "node2 registered")
    rack.look()
    rack.miss("done", "up")

    assert (found["woken"], on) == ([], {"node1"})
    assert failed == ("DOWN+DRAIN+POWERED_DOWN", "bad DIMM")
    assert registered == ("IDLE+DRAIN", "bad DIMM")
    assert shown(rack, "node2") == ("IDLE+DRAIN", "bad DIMM")


def test_a_machine_that_missed_a_command_and_did_not_wake_gets_no_jobs_when_it_boots_late(rack: Rack) -> None:
    asleep(rack)
    rack.miss("begin", "up")
    rack.cluster.run("touch", f"{PLACE}/node2.dead")
    found = rack.miss("wake", "up")
    failed = shown(rack, "node2")
    rack.cluster.run("rm", f"{PLACE}/node2.dead")
    rack.press("node2")
    rack.until(lambda: "POWERED_DOWN" not in rack.state("node2"), 60, "node2 registered")
    rack.look()
    late = shown(rack, "node2")
    rack.miss("done", "up")
    rack.until(lambda: rack.state("node2") == "IDLE", 60, "node2 takes jobs")

    assert (found["woken"], found["asleep"]) == (["node3"], ["node2"])
    assert failed == ("DOWN+DRAIN+POWERED_DOWN", "missed while asleep: up")
    assert late == ("IDLE+DRAIN", "missed while asleep: up")


def test_a_drain_keeps_the_reason_that_slurmctld_forgets_when_its_machine_is_switched_on(recorded_rack: Rack) -> None:
    """24.11 forgets it only where jobs are recorded."""
    rack = recorded_rack
    asleep(rack)
    rack.cluster.run("scontrol", "update", "nodename=node2", "state=drain", "reason=bad DIMM")
    rack.look()
    rack.press("node2")
    rack.cluster.wait_for(lambda: rack.state("node2") == "IDLE+DRAIN", 60, "node2 has registered")
    registered = shown(rack, "node2")
    rack.look()

    assert registered == ("IDLE+DRAIN", "none")
    assert shown(rack, "node2") == ("IDLE+DRAIN", "bad DIMM")
