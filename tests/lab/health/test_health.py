"""A faulty worker gets no jobs until the fault is gone; a worker that an administrator drained stays drained.

    STEAD_LAB=NAME pytest tests/lab/health

Faults are injected beneath the health check, which is then run by hand; one test waits for slurmctld to run it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.lab.health.checking import INTERVAL, PROGRAM, Fault, broken, check, drained, over, said, wait_for

LESS_MEMORY = over(
    "/proc/meminfo",
    # Half of what there is: less than the 95 % that are declared.
    "awk '/^MemTotal/ {$2 = int($2 / 2)} {print}' /proc/meminfo",
    r"memory \d+ MiB below the declared \d+ MiB",
)

TRACKING = "0A4D0003,10.77.0.3,11,1763632800.1,-42.0,0.0,0.0,1.2,0.0,0.05,0.001,0.002,64.2,Normal"

FAULTS = {
    "memory": LESS_MEMORY,
    "cpus": over("/sys/devices/system/cpu/online", "echo 0", r"CPUs \d+ below the declared \d+"),
    "cgroup": over("/sys/fs/cgroup/cgroup.controllers", "echo cpuset cpu io pids", "cgroup controller missing: memory"),
    "clock": over("/usr/bin/chronyc", rf"printf '#!/bin/sh\necho {TRACKING}\n'", "clock 42 s off"),
    "share missing": Fault(
        "systemctl stop share.automount share.mount", "systemctl start share.automount", "share /share is not mounted"
    ),
    "share read-only": Fault(
        "stat /share/. && mount -o remount,bind,ro /share",
        "mount -o remount,bind,rw /share",
        "share /share is read-only",
    ),
    "scratch missing": Fault("umount /scratch", "systemctl start scratch.mount", "scratch /scratch is not mounted"),
    "scratch full": Fault(
        "mount -t tmpfs -o size=8m tmpfs /scratch && ! dd if=/dev/zero of=/scratch/file bs=1M",
        "umount /scratch",
        r"scratch /scratch is full, 0 MiB left",
    ),
}


def test_a_healthy_worker_is_left_alone(lab: Any) -> None:
    assert lab.everywhere(lambda name: lab.root(name, PROGRAM), lab.workers) == dict.fromkeys(lab.workers, "")
    assert {name: said(lab, name)[0] for name in lab.workers} == dict.fromkeys(lab.workers, "idle")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_drains_and_its_end_resumes(lab: Any, victim: str, fault: Fault) -> None:
    with broken(lab, victim, fault):
        state, reason = check(lab, victim)
    assert state == "drained"
    assert re.fullmatch(f"slurmstead: {fault.reason}", reason)

    check(lab, victim)
    # slurmctld has a resumed node register first.
    wait_for(lab, victim, "idle", 2 * INTERVAL)


def test_a_drain_of_a_person_outlives_a_fault_and_a_run(lab: Any, victim: str) -> None:
    with drained(lab, victim, "fan"):
        with broken(lab, victim, LESS_MEMORY):
            assert check(lab, victim) == ("drained", "fan")
        assert check(lab, victim) == ("drained", "fan")

        assert lab.ansible("--tags", "slurm").code == 0
        assert check(lab, victim) == ("drained", "fan")


def test_memory_that_goes_behind_slurms_back_is_seen_within_two_intervals(lab: Any, victim: str) -> None:
    with broken(lab, victim, LESS_MEMORY):
        reason = wait_for(lab, victim, "drained", 2 * INTERVAL)
    assert re.fullmatch(f"slurmstead: {LESS_MEMORY.reason}", reason)

    wait_for(lab, victim, "idle", 2 * INTERVAL)
