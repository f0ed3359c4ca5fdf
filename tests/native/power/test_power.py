"""Machines sleep when nothing is to be done, wake for jobs, and every contradiction is put right: with a real Slurm."""

from __future__ import annotations

import pathlib
import time

import pytest

from ansible.module_utils.slurmstead.power import journal
from ansible.module_utils.slurmstead.power.savings import savings
from ansible.module_utils.slurmstead.power.watch import ASK
from ansible.module_utils.slurmstead.reach import cluster_lock
from tests.native.power.conftest import PLACE, Rack

STATE = "/var/lib/slurm/slurmctld"
JOB_STATE, NODE_STATE = f"{STATE}/job_state", f"{STATE}/node_state"


def test_idle_machines_sleep_and_a_job_wakes_one(rack: Rack, tmp_path: pathlib.Path) -> None:
    rack.until_asleep(rack.cluster.nodes)
    job = rack.submit("--nodelist=node2", "--wrap=sleep 1")
    rack.until(lambda: rack.has_ended(job), 60, "the job has ended")
    woken = set(rack.on)
    rack.until_asleep(rack.cluster.nodes)

    assert woken == {"node2"}
    assert "SuspendTime             = 2147483647 sec" in rack.cluster.run("scontrol", "show", "config")
    assert rack.log().count('"asleep"') == 4
    assert rack.log().count('"awake"') == 1
    (tmp_path / "power.log").write_text(rack.log())
    saved = savings(journal.read(tmp_path / "power.log"), {}, 0, (0, time.time()), rack.cluster.nodes)
    assert {one.node: one.sleeps for one in saved} == {"node1": 1, "node2": 2, "node3": 1}


@pytest.mark.slow
def test_what_a_person_drained_stays_on_and_what_is_kept_awake(rack: Rack) -> None:
    rack.configure(idle=2, keep=1)
    rack.cluster.run("scontrol", "update", "nodename=node1", "state=drain", "reason=fan")
    rack.until_asleep(["node2"])
    for _ in range(8):
        rack.look()

    assert rack.on == {"node1", "node3"}
    assert (rack.state("node1"), rack.state("node3")) == ("IDLE+DRAIN", "IDLE")


@pytest.mark.slow
def test_a_machine_that_does_not_wake_is_tried_again_and_then_left_to_a_person(rack: Rack) -> None:
    rack.until_asleep(rack.cluster.nodes)
    rack.cluster.run("touch", f"{PLACE}/node1.dead")
    # Slurm starts a job again after two minutes at the earliest; each attempt has one of its own.
    job, *_ = (rack.submit("--nodelist=node1", "--wrap=true", "--exclusive") for _ in range(3))
    rack.until(lambda: "does not wake" in reason(rack, "node1"), 240, "node1 is given up")
    given_up = rack.log().count('"let Slurm wake it again"')
    rack.cluster.run("rm", f"{PLACE}/node1.dead")
    rack.cluster.run("scontrol", "update", "nodename=node1", "state=resume")
    rack.until(lambda: rack.has_ended(job), 90, "the job has ended")

    assert given_up == 2
    assert rack.log().count('"leave it to a person"') == 1


@pytest.mark.slow
def test_a_button_and_a_pulled_plug_are_noticed(rack: Rack) -> None:
    rack.until_asleep(rack.cluster.nodes)
    rack.configure(idle=30)
    rack.press("node1")
    rack.until(lambda: rack.state("node1") == "IDLE", 30, "node1 registered")
    rack.pull("node1")
    rack.until(lambda: "POWERED_DOWN" in rack.state("node1"), 60, "Slurm knows that node1 is off")
    job = rack.submit("--nodelist=node1", "--wrap=true")
    rack.until(lambda: rack.has_ended(job), 60, "the job has ended")

    assert '"tell Slurm that it is off"' in rack.log()


@pytest.mark.slow
def test_a_machine_that_slurm_had_put_down_when_it_was_found_off_wakes_for_a_job(rack: Rack) -> None:
    """The device was without supply too, so nothing was known until slurmctld gave the machine up."""
    rack.configure(idle=10000)
    device = rack.cluster.run("cat", f"{PLACE}/device")
    rack.cluster.run("tee", f"{PLACE}/device", text="exit 7")
    rack.pull("node1")
    rack.cluster.configure(SlurmdTimeout="5")
    rack.cluster.run("scontrol", "reconfigure")
    rack.until(lambda: rack.state("node1").startswith("DOWN"), 90, "Slurm has put node1 down")
    rack.cluster.run("tee", f"{PLACE}/device", text=device)
    rack.until(lambda: rack.state("node1") == "IDLE+POWERED_DOWN", 60, "node1 sleeps")
    job = rack.submit("--nodelist=node1", "--wrap=true")
    rack.until(lambda: rack.has_ended(job), 90, "the job has ended")

    assert rack.has_ended(job)


@pytest.mark.slow
def test_no_machine_goes_to_sleep_under_a_run(rack: Rack) -> None:
    rack.configure(idle=1)
    holder = f"mkdir -p /run/slurmstead; setsid flock {cluster_lock.PATH} sleep 1000 >/dev/null 2>&1 </dev/null &"
    rack.cluster.run("sh", "-c", holder)
    rack.cluster.wait_for(lambda: rack.cluster.tried("pgrep", "-x", "flock").stdout, 10, "a run is under way")
    for _ in range(10):
        rack.look()
    during = set(rack.on)
    rack.cluster.run("pkill", "-x", "sleep", "--signal", "TERM", "--newest")
    rack.until_asleep(rack.cluster.nodes)

    assert during == set(rack.cluster.nodes)


@pytest.mark.slow
def test_a_job_that_comes_while_its_machine_goes_down_waits_for_its_next_boot(rack: Rack) -> None:
    rack.until(lambda: "POWERING_DOWN" in rack.state("node1"), 60, "node1 goes down")
    job = rack.submit("--nodelist=node1", "--wrap=true")
    rack.until(lambda: rack.has_ended(job), 90, "the job has ended")

    assert rack.has_ended(job)


@pytest.mark.slow
def test_a_machine_whose_device_does_not_answer_stays_in_service(rack: Rack) -> None:
    device = rack.cluster.run("cat", f"{PLACE}/device")
    rack.cluster.run("tee", f"{PLACE}/device", text="exit 2")
    rack.until(lambda: f'"failed", "why": "{ASK}' in rack.log(), 30, "the device was asked")
    job = rack.submit("--nodelist=node1", "--wrap=true")
    rack.until(lambda: rack.has_ended(job), 30, "the job has ended")
    on = set(rack.on)
    rack.cluster.run("tee", f"{PLACE}/device", text=device)
    rack.until_asleep(rack.cluster.nodes)

    assert on == set(rack.cluster.nodes)


@pytest.mark.slow
def test_a_machine_that_could_not_be_shut_down_returns_with_its_slurmd(rack: Rack) -> None:
    device = rack.cluster.run("cat", f"{PLACE}/device")
    rack.cluster.run("tee", f"{PLACE}/device", text="[ $1 = status ] || exit 2\n" + device)
    rack.until(lambda: "POWERED_DOWN" in rack.state("node1"), 60, "Slurm has powered node1 down")
    rack.configure(idle=10000)
    rack.cluster.restart("node1")
    rack.until(lambda: rack.state("node1") == "IDLE", 30, "node1 is in service")

    assert rack.on == set(rack.cluster.nodes)


@pytest.mark.slow
def test_a_machine_that_is_drained_while_a_job_wakes_it_stays_off(rack: Rack) -> None:
    rack.until_asleep(rack.cluster.nodes)
    rack.cluster.run("touch", f"{PLACE}/node1.dead")
    rack.submit("--nodelist=node1", "--wrap=true")
    rack.until(lambda: '"node1", "what": "switch on"' in rack.log(), 30, "node1 is switched on")
    rack.cluster.run("scontrol", "update", "nodename=node1", "state=drain", "reason=fan")
    rack.cluster.run("rm", f"{PLACE}/node1.dead")
    rack.until(lambda: "POWERED_DOWN" in rack.state("node1"), 60, "Slurm has given node1 up")
    rack.look()

    assert "node1" not in rack.on
    assert "DRAIN" in rack.state("node1")


@pytest.mark.slow
def test_slurmctld_that_was_killed_wakes_what_it_waited_for(rack: Rack) -> None:
    rack.until_asleep(rack.cluster.nodes)
    job = rack.submit("--nodelist=node1", "--wrap=true")
    rack.cluster.wait_for(lambda: "POWERING_UP" in rack.state("node1"), 30, "node1 is wanted")
    rack.cluster.stop("control", "KILL")
    rack.look()
    rack.cluster.start("control")
    rack.until(lambda: rack.has_ended(job), 90, "the job has ended")

    assert rack.has_ended(job)


@pytest.mark.slow
def test_slurmctld_that_was_restarted_gives_up_a_machine_that_does_not_boot(rack: Rack) -> None:
    """Its shutdown is refused, so it is on all the time, and its slurmd never registers after a boot."""
    device = rack.cluster.run("cat", f"{PLACE}/device")
    rack.cluster.run("tee", f"{PLACE}/device", text="[ $1 = status ] || exit 2\n" + device)
    rack.until(lambda: "POWERED_DOWN" in rack.state("node1"), 60, "Slurm has powered node1 down")
    job = rack.submit("--nodelist=node1", "--wrap=true")
    rack.cluster.wait_for(lambda: "POWERING_UP" in rack.state("node1"), 30, "node1 is wanted")
    rack.cluster.restart("control")
    rack.until(lambda: "JobState=PENDING" in rack.cluster.run("scontrol", "show", "job", job), 60, "the job is queued")

    assert '"tell Slurm that it has not booted"' in rack.log()


@pytest.mark.slow
def test_slurmctld_without_its_state_learns_who_sleeps(rack: Rack) -> None:
    rack.until_asleep(rack.cluster.nodes)
    rack.cluster.stop("control", "KILL")
    rack.cluster.run("sh", "-c", "rm -f /var/lib/slurm/slurmctld/node_state*")
    rack.cluster.start("control")
    assert rack.state("node1").startswith("UNKNOWN")
    rack.until_asleep(rack.cluster.nodes)
    job = rack.submit("--nodes=3", "--wrap=srun hostname")
    rack.until(lambda: rack.has_ended(job), 90, "the job has ended")

    assert rack.has_ended(job)


def a_job_that_is_saved_as_ending(rack: Rack) -> str:
    """Return a job of node1 that has ended; /tmp/ending is what slurmctld saved before that."""
    cluster, job = rack.cluster, rack.submit("--nodelist=node1", "--wrap=sleep 3")
    cluster.wait_for(lambda: cluster.tried("pgrep", "-u", "alice", "sleep", on="node1").stdout, 30, "the job runs")
    cluster.run("pkill", "-STOP", "-x", "slurmd", on="node1")
    cluster.wait_for(lambda: "COMPLETING" in rack.state("node1"), 30, "the job is ending")
    cluster.run("touch", "/tmp/ending")
    cluster.run("scancel", rack.submit("--hold", "--wrap=true"))  # slurmctld saves again
    cluster.wait_for(lambda: cluster.run("find", JOB_STATE, "-newer", "/tmp/ending"), 30, "that is saved")
    cluster.run("cp", "--preserve", JOB_STATE, "/tmp/ending")
    cluster.run("pkill", "-CONT", "-x", "slurmd", on="node1")
    return job


@pytest.mark.slow
def test_a_job_whose_end_slurmctld_had_not_saved_ends_although_its_machine_sleeps(rack: Rack) -> None:
    cluster, job = rack.cluster, a_job_that_is_saved_as_ending(rack)
    rack.until_asleep(cluster.nodes)
    cluster.stop("control", "KILL")
    cluster.run("cp", "--preserve", "/tmp/ending", JOB_STATE)
    cluster.start("control")
    before = rack.has_ended(job)
    rack.until(lambda: rack.has_ended(job), 60, "the job has ended")
    next_job = rack.submit("--nodelist=node1", "--wrap=true")
    rack.until(lambda: rack.has_ended(next_job), 90, "the next job has ended")

    assert not before


@pytest.mark.slow
def test_such_a_job_also_ends_on_a_machine_that_was_drained_while_it_went_down(rack: Rack) -> None:
    cluster = rack.cluster
    cluster.configure(SuspendTimeout="60")
    cluster.restart("control")
    job = a_job_that_is_saved_as_ending(rack)
    rack.until(lambda: "node1" not in rack.on, 60, "node1 is off")
    cluster.run("scontrol", "update", "nodename=node1", "state=drain", "reason=fan")
    cluster.stop("control")
    cluster.run("cp", "--preserve", "/tmp/ending", JOB_STATE)
    cluster.start("control")
    cluster.run("scontrol", "update", "nodename=node1", "state=resume")
    before = rack.state("node1")
    rack.until(lambda: rack.has_ended(job), 60, "the job has ended")

    assert before == "IDLE+COMPLETING+POWERED_DOWN+NOT_RESPONDING"


@pytest.mark.slow
def test_a_machine_that_slurmctld_had_not_saved_as_awake_keeps_its_job_or_boots_again(rack: Rack) -> None:
    cluster, nodes = rack.cluster, ["node1", "node2"]
    rack.until_asleep(cluster.nodes)
    cluster.restart("control")
    cluster.run("cp", "--preserve", NODE_STATE, "/tmp/asleep")
    jobs = [rack.submit(f"--nodelist={name}", "--wrap=sleep 30") for name in nodes]
    rack.until(lambda: all(map(rack.runs, jobs)), 60, "the jobs run")
    cluster.stop("control")
    cluster.run("cp", "--preserve", "/tmp/asleep", NODE_STATE)
    cluster.start("control")
    before = [rack.state(name) for name in nodes]
    rack.pull("node1")
    rack.until(lambda: rack.has_ended(jobs[1]), 60, "the job has ended")
    rack.until(lambda: rack.state("node1") == "MIXED", 60, "node1 is awake")
    rack.until_asleep(["node2"])

    assert before == ["MIXED+POWERED_DOWN"] * 2
    assert rack.on == {"node1"}
    assert rack.log().count('"let Slurm wake it for its job"') == 1


@pytest.mark.slow
def test_a_request_to_power_up_that_stayed_keeps_no_machine_awake(rack: Rack) -> None:
    cluster = rack.cluster

    def stays() -> bool:
        rack.configure()
        rack.until_asleep(cluster.nodes)
        rack.configure(idle=31536000)
        cluster.run("scontrol", "update", "nodename=node1", "state=power_up")
        rack.press("node1")
        rack.until(lambda: "IDLE" in rack.state("node1") and "POWERED_DOWN" not in rack.state("node1"), 60, "it is on")
        return rack.state("node1") == "IDLE+POWER_UP"

    assert any(stays() for _ in range(10))
    rack.configure()
    rack.until(lambda: not rack.on and rack.state("node1") == "IDLE+POWERED_DOWN", 120, "no request is left")

    assert "did not wake" not in rack.log()


@pytest.mark.slow
def test_a_proof_switches_one_machine_off_and_on_and_measures_it(rack: Rack) -> None:
    rack.cluster.run("scontrol", "update", "nodename=node1", "state=drain", "reason=test")
    before = set(rack.on)
    found = rack.prove("node1")

    assert rack.on == before
    assert found["off"] > 0
    assert found["on"] > 0
    assert rack.state("node1") == "IDLE+DRAIN"


@pytest.mark.slow
def test_a_machine_whose_supply_stays_on_is_not_proved(rack: Rack) -> None:
    rack.cluster.run("scontrol", "update", "nodename=node1", "state=drain", "reason=test")
    device = rack.cluster.run("cat", f"{PLACE}/device")
    rack.cluster.run("tee", f"{PLACE}/device", text=device.replace("rm -f", "true"))

    with pytest.raises(AssertionError, match="still reports on"):
        rack.prove("node1")


def weigh(rack: Rack) -> None:
    """Make node1 the most expensive machine and node3 the cheapest, and let all sleep."""
    for name, weight in (("node1", "201"), ("node2", "101"), ("node3", "91")):
        rack.cluster.run("scontrol", "update", f"nodename={name}", f"weight={weight}")
    rack.until_asleep(rack.cluster.nodes)
    rack.configure(idle=10000)


@pytest.mark.slow
def test_a_job_goes_to_a_machine_that_is_awake_and_not_to_a_cheaper_one_that_sleeps(rack: Rack) -> None:
    weigh(rack)
    rack.press("node1")
    rack.until(lambda: rack.state("node1") == "IDLE", 60, "node1 is awake")
    job = rack.submit("--wrap=true", "--exclusive")
    rack.until(lambda: rack.has_ended(job), 60, "the job has ended")

    assert rack.on == {"node1"}


# Backfill of 22.05 was seen to wake a more expensive one.
@pytest.mark.slow
@pytest.mark.parametrize("release", ["trixie"], scope="module")
def test_a_job_wakes_the_cheapest_machine(rack: Rack) -> None:
    weigh(rack)
    rack.submit("--wrap=sleep 1000", "--exclusive")
    rack.until(lambda: rack.on, 60, "a machine is awake")

    assert rack.on == {"node3"}


def reason(rack: Rack, name: str) -> str:
    """Return why a node is out of service."""
    return rack.cluster.run("sinfo", "--noheader", f"--nodes={name}", "--format=%E")
