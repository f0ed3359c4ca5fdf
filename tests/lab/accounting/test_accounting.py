"""The records of jobs of a lab: switched off, switched on under a job, backed up and restored.

STEAD_LAB=NAME pytest tests/lab/accounting
"""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS

ON = {"accounting_enabled": True, "shares_template": "course", "shares_low": "requeue"}

OFF = {"accounting_enabled": False, "shares_template": "home", "shares_low": "none"}


def configure(lab: Any, *arguments: str, **variables: Any) -> Any:
    """Configure the records of jobs with other variables."""
    given = json.dumps({**ON, **lab.of_containers.get("extra", {}), **variables})
    return lab.ansible("--tags", "os,accounting,slurm", "--extra-vars", given, *arguments)


def play(lab: Any, name: str, **variables: Any) -> None:
    """Run another playbook; its failure fails the test."""
    given = json.dumps({**ON, **lab.of_containers.get("extra", {}), **variables})
    run = lab.ansible("--extra-vars", given, str(PLAYBOOKS / name))
    assert run.code == 0, run.output[-5000:]


def recorded(lab: Any, number: str, seconds: float = 60) -> str:
    """Return the recorded state of a job, once it has ended."""
    until, state = time.monotonic() + seconds, ""
    while state in ("", "PENDING", "RUNNING") and time.monotonic() < until:
        state = lab.root(lab.control, f"sacct -nPX -j {number} --format=State").strip()
        time.sleep(1)
    return state


@pytest.fixture(scope="module")
def job(lab: Any) -> str:
    """A job that waits before its records are wanted."""
    off = configure(lab, **OFF)
    assert off.code == 0, off.output[-5000:]
    assert lab.root(lab.control, "systemctl is-active slurmdbd || true").strip() == "inactive"
    words = "sbatch --parsable --begin=now+1hour --output=/dev/null --wrap=true"
    return str(lab.without_login(lab.control, "alice", words)).strip()


@pytest.fixture(scope="module")
def switched_on(lab: Any, job: str) -> Iterator[str]:
    """A lab that records its jobs."""
    assert job
    run = configure(lab)
    assert run.code == 0, run.output[-5000:]
    yield job
    usual = lab.ansible("--tags", "os,accounting,slurm", *lab.of_containers.get("options", ()))
    assert usual.code == 0, usual.output[-5000:]


def test_a_job_that_waited_is_recorded_under_its_number(lab: Any, switched_on: str) -> None:
    lab.root(lab.control, f"scontrol update jobid={switched_on} starttime=now")

    assert recorded(lab, switched_on) == "COMPLETED"


def test_a_second_run_changes_nothing(lab: Any, switched_on: str) -> None:
    run = configure(lab)

    assert switched_on and run.code == 0, run.output[-5000:]
    assert run.changed == {}


def test_both_daemons_return_after_they_were_killed(lab: Any, switched_on: str) -> None:
    lab.root(lab.control, "systemctl kill --signal=KILL mariadb slurmdbd")

    until = time.monotonic() + 60
    asked = "sacctmgr -nP show cluster format=Cluster 2>&- || true"
    while not (answer := lab.root(lab.control, asked).strip()) and time.monotonic() < until:
        time.sleep(1)
    assert switched_on and answer


def test_a_user_has_an_account_with_limits(lab: Any, switched_on: str) -> None:
    shown = lab.root(lab.control, "sacctmgr -nP show assoc format=Account,User,QOS user=alice")
    words = "sbatch --parsable --test-only --qos=low --wrap=true"
    lab.without_login(lab.control, "alice", words)

    assert switched_on and shown.split("|")[1] == "alice"
    assert "low" in shown.split("|")[2]


def test_lost_records_come_back_from_a_backup(lab: Any, switched_on: str, tmp_path: pathlib.Path) -> None:
    archive = str(tmp_path / "archive.tar.gz")
    play(lab, "backup-cluster.yml", backup_output=archive)
    lab.root(lab.control, "mariadb -e 'DELETE FROM slurm_acct_db.lab_job_table'")
    assert recorded(lab, switched_on, seconds=2) == ""

    play(lab, "restore-cluster.yml", restore_archive=archive, restore_force=True)

    assert recorded(lab, switched_on) == "COMPLETED"


def test_the_database_listens_for_this_machine_only(lab: Any) -> None:
    """The doctor says the same; with mariadb.socket, MariaDB ignores its bind-address."""
    lines = lab.root(lab.control, "ss --no-header --listening --tcp --numeric 'sport = :3306'").splitlines()

    assert [line.split()[3] for line in lines] == ["127.0.0.1:3306"]
