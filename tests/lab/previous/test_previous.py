"""A cluster that the previous release made, with jobs in its queue, becomes one of this tree.

It destroys the lab and makes it again with that release, a commit of this repository.

STEAD_LAB=NAME pytest -s -o faulthandler_timeout=5400 tests/lab/previous
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.lab import machines as stead_lab
from slurmstead.paths import LAB_INVENTORY, ROOT

RELEASE = "57b66b104d55ba021c7f355ba8015bbf21996e61"
"""The last commit without people, records of jobs and shares."""

PENDING = 20
SUBMIT = "sbatch --parsable --no-requeue --mem=50 --output=/dev/null"
ENDED = "echo ended >> ended-$SLURM_JOB_ID"
UNTIL_GO = f"until [ -e ~/go ]; do sleep 1; done; {ENDED}"
"""A job that runs until it may end, however long the update takes."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A clone with the files of the previous release."""
    path = tmp_path_factory.mktemp("previous") / "tree"
    for words in (["clone", "--quiet", "--shared", "--no-checkout", ROOT, path], ["-C", path, "checkout", RELEASE]):
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}If history is missing: git fetch --unshallow"
    return path


@pytest.fixture(scope="module")
def site(tree: pathlib.Path) -> pathlib.Path:
    """The lab's inventory of the previous release, as a site."""
    path = tree.parent / "site"
    shutil.copytree(tree / LAB_INVENTORY.relative_to(ROOT), path)
    (path / ".slurmstead").touch()
    return path


@pytest.fixture(scope="module")
def before(lab: Any, tree: pathlib.Path, site: pathlib.Path) -> Iterator[None]:
    """A lab with a cluster of the previous release, run with the Python packages of this tree."""
    kind = ["--native"] if stead_lab.is_native(lab.directory) else []
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    for words in (["lab", "down"], ["lab", "up", *kind], ["up", "-i", str(site)]):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "slurmstead", *words],
            cwd=tree,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(tree / "scripts")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2400,
            check=False,
        )
        assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    lab.inventory, usual = site / "hosts.yml", lab.inventory
    yield
    lab.inventory = usual


@pytest.fixture(scope="module")
def jobs(lab: Any, before: None) -> dict[str, list[str]]:
    """Jobs that each use a whole worker, and jobs that wait for them, by state."""
    lab.wait_until_idle(180)
    running = [lab.user(f"{SUBMIT} --exclusive --nodelist={name} --wrap={UNTIL_GO!r}").strip() for name in lab.workers]
    pending = lab.user(f"for i in $(seq {PENDING}); do {SUBMIT} --wrap={ENDED!r}; done", seconds=240).split()
    queue = {"RUNNING": running, "PENDING": pending}
    deadline = time.monotonic() + 60
    while queued(lab) != queue and time.monotonic() < deadline:
        time.sleep(1)
    assert queued(lab) == queue
    return queue


def queued(lab: Any) -> dict[str, list[str]]:
    """Return the numbers of all jobs in the queue, by state."""
    found: dict[str, list[str]] = {}
    for line in lab.root(lab.control, "squeue --noheader --sort=i --format='%T %A'").splitlines():
        state, number = line.split()
        found.setdefault(state, []).append(number)
    return found


def shown(lab: Any, numbers: list[str]) -> dict[str, str]:
    """Return when jobs started and how often again, as slurmctld has it."""
    lines = lab.root(lab.control, "scontrol --oneliner show job").splitlines()
    fields = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
    return {job["JobId"]: f"{job['StartTime']} {job['Restarts']}" for job in fields if job["JobId"] in numbers}


def test_an_update_shows_its_changes_first(lab: Any, jobs: dict[str, list[str]], stead: Callable[..., Any]) -> None:
    files = lab.everywhere(lab.tree)

    done = stead("drift")

    assert done.returncode == ExitCode.CHECK_FAILED, done.stdout
    assert "AccountingStorageHost" in done.stdout
    assert lab.everywhere(lab.tree) == files
    assert queued(lab) == jobs


def test_jobs_do_not_notice_the_update(lab: Any, jobs: dict[str, list[str]], stead: Callable[..., Any]) -> None:
    starts = shown(lab, jobs["RUNNING"])
    known = lab.user("id")

    done = stead("up", seconds=2400)

    assert done.returncode == ExitCode.OK
    assert queued(lab) == jobs
    assert shown(lab, jobs["RUNNING"]) == starts
    assert lab.user("id") == known
    assert "accounting_storage/slurmdbd" in lab.root(lab.control, "scontrol show config")


def test_a_second_run_changes_nothing(lab: Any, jobs: dict[str, list[str]], stead: Callable[..., Any]) -> None:
    pids = lab.pids()

    done = stead("up")

    assert re.search(r"\b0 changes on 4 hosts", done.stdout)
    assert (lab.pids(), queued(lab)) == (pids, jobs)


def test_limits_can_be_switched_on_over_jobs_from_before(lab: Any, jobs: dict[str, list[str]], site: Any) -> None:
    variables = site / "group_vars/all.yml"
    variables.write_text(f"{variables.read_text()}shares_template: course\n")

    run = lab.ansible("--tags", "accounting,slurm", seconds=1800)

    assert run.code == 0, run.output[-5000:]
    assert "associations,limits" in lab.root(lab.control, "scontrol show config").lower()
    assert queued(lab) == jobs


def test_all_jobs_end_once_and_are_recorded_under_their_numbers(lab: Any, jobs: dict[str, list[str]]) -> None:
    following = lab.user(f"{SUBMIT} --wrap={ENDED!r}").strip()
    numbers = [*jobs["RUNNING"], *jobs["PENDING"], following]
    lab.user("touch go")
    lab.wait_until_idle(600)

    assert int(following) == int(jobs["PENDING"][-1]) + 1
    said = lab.user(f"for i in {' '.join(numbers)}; do cat ended-$i; done")
    assert said.split() == ["ended"] * len(numbers)
    expected = {number: ["alice", "COMPLETED"] for number in numbers}
    deadline = time.monotonic() + 60
    while True:
        lines = lab.root(lab.control, "sacct -nPX --allusers --format=JobID,User,State").splitlines()
        recorded = {number: rest for number, *rest in (line.split("|") for line in lines)}
        if recorded == expected or time.monotonic() > deadline:
            break
        time.sleep(1)
    assert recorded == expected
