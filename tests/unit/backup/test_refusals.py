"""An archive is refused before anything is changed where it would not bring its cluster back, or would cost another."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.backup.refusals import Target, refusals
from ansible.module_utils.slurmstead.slurm.jobs import Job, State

MANIFEST: dict[str, Any] = {"cluster": "lab", "control": "node3", "slurm": "22.05.8", "owners": {"alice": 2001}}
GOOD = Target("lab", "22.05.8", State(), {"alice": 2001, "root": 0})


@pytest.mark.parametrize(
    ("archived", "installed"),
    [
        ("22.05.8", "22.05.8"),
        ("22.05.8", "22.05.11"),
        ("22.05.8", "22.05"),
        ("22.05.8", "23.11.4"),
        ("23.11.4", "24.11.5"),
        ("22.05.8", ""),
        ("", "22.05.8"),
        ("24.05.1", "26.05.1"),
    ],
)
def test_a_slurmctld_that_reads_the_state_may_have_it(archived: str, installed: str) -> None:
    target = Target("lab", installed, State(), GOOD.users)

    assert refusals({**MANIFEST, "slurm": archived}, target) == []


@pytest.mark.parametrize(
    ("archived", "installed", "way"),
    [
        ("24.11.5", "22.05.8", "install 24.11 first"),
        ("24.11.5", "23.11", "install 24.11 first"),
        ("22.05.8", "24.11.5", "restore it onto 22.05, then upgrade in steps"),
    ],
)
def test_a_slurmctld_that_cannot_read_the_state_is_refused(archived: str, installed: str, way: str) -> None:
    (said,) = refusals({**MANIFEST, "slurm": archived}, Target("lab", installed, State(), GOOD.users))

    assert archived in said
    assert installed in said
    assert said.endswith(way)


@pytest.mark.parametrize("force", [False, True])
def test_the_archive_of_another_cluster_is_refused(force: bool) -> None:
    (said,) = refusals(MANIFEST, Target("attic", "22.05.8", State(), GOOD.users), force)

    assert "is of the cluster lab, and this inventory describes attic" in said


@pytest.mark.parametrize("job", [Job("7", "RUNNING", "main", ("n1",)), Job("8", "PENDING", "main")])
def test_jobs_that_are_there_are_not_lost_unless_one_says_so(job: Job) -> None:
    target = Target("lab", "22.05.8", State((job,)), GOOD.users)

    (said,) = refusals(MANIFEST, target)

    assert f"job {job.number} ({job.state.lower()}" in said
    assert "--force" in said
    assert refusals(MANIFEST, target, force=True) == []


def test_a_queue_that_cannot_be_read_counts_as_full() -> None:
    target = Target("lab", "22.05.8", State(heard=False), GOOD.users)

    assert refusals(MANIFEST, target) == [
        "the queue of the control node cannot be read: start slurmctld there; --force discards all its jobs"
    ]
    assert refusals(MANIFEST, target, force=True) == []


@pytest.mark.parametrize("users", [{"alice": 2007}, {"bob": 2001}, {"alice": 2007, "bob": 2001}])
def test_jobs_do_not_become_somebody_elses(users: dict[str, int]) -> None:
    (said,) = refusals(MANIFEST, Target("lab", "22.05.8", State(), users), force=True)

    assert "number 2001" in said


def test_an_owner_who_is_not_known_yet_is_none_that_hinders() -> None:
    assert refusals(MANIFEST, Target("lab", "22.05.8", State(), {"root": 0})) == []
