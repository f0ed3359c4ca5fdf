"""Machines sleep when nothing is to be done, wake for jobs, and every contradiction is put right: with a real Slurm."""

from __future__ import annotations

from tests.native.power.conftest import Rack


def test_idle_machines_sleep_and_a_job_wakes_one(rack: Rack) -> None:
    rack.until_asleep(rack.cluster.nodes)
    job = rack.submit("--nodelist=node2", "--wrap=sleep 1")
    rack.until(lambda: rack.has_ended(job), 60, "the job has ended")
    woken = set(rack.on)
    rack.until_asleep(rack.cluster.nodes)

    assert woken == {"node2"}
    assert rack.log().count('"asleep"') == 4
    assert rack.log().count('"awake"') == 1
