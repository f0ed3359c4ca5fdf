"""The share is not replaced by an empty one, and a move that is killed is completed by the next run.

The tests build on each other: each leaves the share where it moved it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.run import Run
from tests.lab.share.conftest import Places

FIRST, SECOND, THIRD = "/srv/share", "/srv/moved/a", "/srv/moved/b"
TASKS = (
    "Mark the directory as a copy",
    "Make the directory read-only",
    "Copy what has changed, and compare all files",
    "Mount the share on first use, now and at boot",
    "Remove the mark of the copy",
    "Return the workers to service",
)
"""Tasks of move-share.yml at whose beginning the run is killed, in their order."""


def failures(run: Run) -> str:
    return run.output[-6000:]


def killed_at(wanted: str) -> Callable[[str, int], None]:
    """Return what kills a run when a task begins, whatever role has it."""

    def began(task: str, pid: int) -> None:
        if task.rpartition(" : ")[2] == wanted:
            os.kill(pid, signal.SIGKILL)

    return began


def test_another_directory_is_refused_before_anything_is_changed(
    lab: Any, places: Places, files: Callable[[], str]
) -> None:
    before, mounts = files(), lab.everywhere(lambda name: lab.root(name, "findmnt --noheadings /share"))
    places.at(SECOND)
    run = places.site()

    assert run.code != 0
    assert f"now {FIRST}, in the inventory {SECOND}" in run.output
    assert not run.changed, failures(run)
    assert files() == before
    assert lab.everywhere(lambda name: lab.root(name, "findmnt --noheadings /share")) == mounts


def test_a_running_job_is_not_disturbed(lab: Any, places: Places, files: Callable[[], str]) -> None:
    files()
    job = lab.user("sbatch --parsable --mem=50 --output=/dev/null --chdir=/share/home/alice --wrap='sleep 900'")
    lab.user(f"until squeue --noheader --job={job} --states=running | grep -q .; do sleep 1; done")
    places.at(SECOND)
    try:
        run = places.move()
        assert run.code != 0
        assert f"nothing was changed, because of job {job}" in run.output
        assert not run.changed, failures(run)
    finally:
        lab.user(f"scancel {job}; while squeue --noheader --job={job} | grep -q .; do sleep 1; done")
    lab.wait_until_idle(120)


def test_a_process_that_uses_the_share_is_named(lab: Any, places: Places, files: Callable[[], str]) -> None:
    files()
    name = lab.workers[0]
    lab.root(name, "systemd-run --quiet --unit=stead-user --property=WorkingDirectory=/share/home/alice sleep 900")
    places.at(SECOND)
    try:
        run = places.move()
    finally:
        lab.root(name, "systemctl stop stead-user")

    assert run.code != 0
    assert f"{name}: sleep (process " in run.output
    assert "uses /share/home/alice" in run.output
    assert not run.changed, failures(run)


def test_a_move_that_is_killed_again_and_again_is_completed(lab: Any, places: Places, files: Callable[[], str]) -> None:
    before = files()
    waiting = lab.user("sbatch --parsable --mem=50 --output=/dev/null --begin=now+1day --wrap=true")
    places.at(SECOND)
    for task in TASKS:
        run = places.move(began=killed_at(task))
        assert run.code == -signal.SIGKILL, f"{task}: {failures(run)}"

    run = places.move()
    assert run.code == 0, failures(run)
    assert files() == before
    assert ".slurmstead-copy" not in lab.root(lab.server, f"ls -A {SECOND}")
    assert lab.root(lab.server, f"ls -A {FIRST}/home/alice/kept")
    assert "Read-only" in lab.root(lab.server, f"touch {FIRST}/new 2>&1 || true")
    lab.user("echo written > moved && srun --mem=50 cat moved && rm moved")
    assert lab.user(f"squeue --noheader --job={waiting} --format=%T") == "PENDING"
    lab.user(f"scancel {waiting}")
    lab.wait_until_idle(180)


def test_afterwards_a_run_changes_nothing(lab: Any, places: Places) -> None:
    places.at(SECOND)
    run = places.site()

    assert run.code == 0, failures(run)
    assert not run.changed, run.changed


def test_a_move_is_undone_by_the_earlier_inventory(lab: Any, places: Places, files: Callable[[], str]) -> None:
    before = files()
    places.at(THIRD)
    run = places.move(began=killed_at("Copy what has changed, and compare all files"))
    assert run.code == -signal.SIGKILL, failures(run)
    places.at(SECOND)
    refused = places.site()
    assert "is read-only since a move was interrupted" in refused.output

    run = places.move()
    assert run.code == 0, failures(run)
    assert files() == before
    lab.user("echo written > undone && rm undone")
    assert lab.root(lab.server, f"cat {THIRD}/.slurmstead-copy/original") == f"{lab.server}:{SECOND}"
    lab.wait_until_idle(180)


@pytest.mark.kernel  # Containers have no NFS server, and no loop devices.
def test_another_machine_becomes_the_server(lab: Any, places: Places, files: Callable[[], str]) -> None:
    before, server = files(), lab.workers[-1]
    places.at("/srv/cluster", server)
    for task in ("Copy the files", "Copy what has changed, and compare all files", "Export the share"):
        run = places.move(began=killed_at(task))
        assert run.code == -signal.SIGKILL, f"{task}: {failures(run)}"

    run = places.move()
    assert run.code == 0, failures(run)
    assert files() == before
    source = lab.root(lab.workers[0], "findmnt --noheadings --output=SOURCE --types=nfs4 /share")
    assert source == f"{lab.address(server)}:/srv/cluster"
    assert "/dev/loop" in lab.root(server, "findmnt --noheadings --output=SOURCE /srv/cluster")
    assert lab.root(lab.server, "exportfs -s") == ""
    assert lab.root(lab.server, "systemctl list-units --all --plain --no-legend slurmstead-move.service") == ""
    assert not places.site().changed
    lab.wait_until_idle(180)
