"""A change reaches the daemons through site.yml and systemd, or everything is as it was; see also tests/native/gate.

STEAD_LAB=NAME pytest tests/lab/gate
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

QUEUE = "squeue --noheader --sort=i --format='%A %T %N'"


@pytest.fixture(scope="module")
def jobs(lab: Any) -> Iterator[str]:
    """What squeue shows of three running and twenty waiting jobs."""
    lab.wait_until_idle(180)
    submit = "sbatch --output=/dev/null --ntasks=1 --mem=16 --wrap='sleep 3600'"
    lab.user(f"for i in 1 2 3; do {submit}; done; for i in $(seq 20); do {submit} --begin=now+7200; done", seconds=300)
    try:
        until = time.monotonic() + 60
        while str(seen := lab.user(QUEUE)).count(" RUNNING ") < 3:
            assert time.monotonic() < until, f"the jobs do not start:\n{seen}"
            time.sleep(1)
        yield seen
    finally:
        lab.user("scancel --user=$USER")
        lab.wait_until_idle(180)


@pytest.fixture(autouse=True)
def as_before(lab: Any, jobs: str) -> Iterator[None]:
    """The configuration of the inventory after each test, and the same jobs on the same nodes."""
    yield
    assert lab.ansible("--tags", "slurm").code == 0
    assert lab.user(QUEUE) == jobs


def changed(lab: Any, **keys: Any) -> Any:
    """Run the part of Slurm with other keys in slurm.conf."""
    variables = json.dumps({"slurm_config": lab.slurm_config(**keys)})
    return lab.ansible("--tags", "slurm", "--extra-vars", variables)


def told(lab: Any, key: str) -> str:
    """Return what slurmctld has for a key."""
    shown = lab.root(lab.control, "scontrol show config")
    return str(re.search(rf"^{key} *= (.*)$", shown, re.MULTILINE)[1])


def test_a_change_arrives_and_no_job_notices(lab: Any, jobs: str) -> None:
    assert changed(lab, MaxJobCount=25001).code == 0

    assert (told(lab, "MaxJobCount"), lab.user(QUEUE)) == ("25001", jobs)


def seconds_of_illness(lab: Any, since: str) -> float:
    """Return how long after slurmctld was ended for a change the one with the last good set was up."""
    said = lab.root(lab.control, f"journalctl --unit=slurmctld --since=@{since} --output=short-unix --no-pager")
    stopped = [float(line.split()[0]) for line in said.splitlines() if "]: Stopping slurmctld" in line]
    started = [float(line.split()[0]) for line in said.splitlines() if "]: Started slurmctld" in line]
    assert stopped and started, said
    return started[-1] - stopped[0]


def test_what_makes_slurmctld_ill_is_taken_back(lab: Any, jobs: str) -> None:
    since = lab.root(lab.control, "date +%s")
    run = changed(lab, JobCompType="jobcomp/filetxt", JobCompLoc="/nonexistent/a/b")

    assert run.code != 0
    assert "/nonexistent/a/b: No such file or directory" in run.output
    assert "The last good configuration is active again, and slurmctld runs with it" in run.output
    assert " is UP" in lab.root(lab.control, "scontrol ping")
    assert lab.user(QUEUE) == jobs
    assert seconds_of_illness(lab, since) < 30
