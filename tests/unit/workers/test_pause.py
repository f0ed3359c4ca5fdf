"""A worker gets no new jobs for a while, and nobody's drain is lost by it."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Mapping

import pytest

from ansible.module_utils.slurmstead.slurm.answers import read_nodes
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job, State
from ansible.module_utils.slurmstead.workers import pause as worker_pause
from ansible.module_utils.slurmstead.workers.pause import Before, PauseError, Worker
from ansible.module_utils.slurmstead.workers.reasons import UPGRADE

RUNS = Job("7", "RUNNING", "main", ("n1",), "None")
WAITS = Job("8", "PENDING", "main", (), "Resources")
GIVEN_UP = Job("7", "PENDING", "main", (), "BeginTime")
LINE = "slurmctld: requeue job JobId=7 due to failure of node n1\n"


class Cluster(Slurm):
    """A slurmctld that has one worker and does as it is told."""

    def __init__(self, state: str = "MIXED", reason: str = "", jobs: tuple[Job, ...] = (RUNS, WAITS)) -> None:
        self.shown, self.reason, self.jobs, self.started = state, reason, jobs, "2026-11-21T14:50:33"
        self.written = ""

    def answers(self) -> bool:
        return True

    def state(self) -> State:
        return State(self.jobs)

    def setting(self, key: str) -> str:
        return {"MinJobAge": "30 sec", "SlurmctldLogFile": self.written}[key]

    def nodes(self) -> dict[str, dict[str, str]]:
        said = f" Reason={self.reason} [root@2026-11-21T14:50:33]" if self.reason else ""
        return read_nodes(f"NodeName=n1 State={self.shown} SlurmdStartTime={self.started}{said}")

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Resume; no administrator drains meanwhile."""
        self.update(compress(seen), "RESUME")
        return []

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        assert nodes == "n1"
        self.shown, self.reason = ("MIXED+DRAIN", reason) if state == "DRAIN" else ("MIXED", self.reason)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for what will not come."""
    monkeypatch.setattr(worker_pause, "SETTLE", 0.0)


def test_a_worker_is_paused_and_given_back() -> None:
    cluster = Cluster()

    changed, before = Worker("n1", cluster).pause(check_mode=False)

    assert (changed, cluster.shown, cluster.reason) == (True, "MIXED+DRAIN", UPGRADE)
    assert before.jobs == (RUNS,)
    assert Worker("n1", cluster).give_back(before, restarted=False)
    assert cluster.shown == "MIXED"


def test_a_dry_run_pauses_nobody() -> None:
    cluster = Cluster()

    assert Worker("n1", cluster).pause(check_mode=True)[0]
    assert cluster.shown == "MIXED"


@pytest.mark.parametrize("reason", ["fan", "stead reboot"])
def test_whom_somebody_drained_stays_drained(reason: str) -> None:
    cluster = Cluster("MIXED+DRAIN", reason)

    changed, before = Worker("n1", cluster).pause(check_mode=False)

    assert not changed
    assert not Worker("n1", cluster).give_back(before, restarted=False)
    assert (cluster.shown, cluster.reason) == ("MIXED+DRAIN", reason)


def test_no_health_check_resumes_a_worker_during_the_pause() -> None:
    unwell = "slurmstead: share /share does not answer"
    cluster = Cluster("MIXED+DRAIN", unwell)

    changed, before = Worker("n1", cluster).pause(check_mode=False)

    assert (changed, cluster.shown, cluster.reason) == (True, "MIXED+DRAIN", UPGRADE)
    assert Worker("n1", cluster).give_back(before, restarted=False)
    # No job gets a worker that may still be unwell; its health check resumes it.
    assert (cluster.shown, cluster.reason) == ("MIXED+DRAIN", unwell)


@pytest.mark.parametrize(("state", "reason"), [("MIXED", ""), ("MIXED+DRAIN", "slurmstead: disk / is full")])
def test_packages_of_a_worker_that_slurmctld_did_not_drain_stay(
    monkeypatch: pytest.MonkeyPatch, state: str, reason: str
) -> None:
    cluster = Cluster(state, reason)
    monkeypatch.setattr(cluster, "update", lambda *_: None)

    with pytest.raises(PauseError, match="slurmctld did not drain it"):
        Worker("n1", cluster).pause(check_mode=False)


def test_a_drain_while_the_jobs_are_asked_for_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()

    def state() -> State:
        cluster.update("n1", "DRAIN", "fan")
        return State(cluster.jobs)

    monkeypatch.setattr(cluster, "state", state)

    assert not Worker("n1", cluster).pause(check_mode=False)[0]
    assert (cluster.shown, cluster.reason) == ("MIXED+DRAIN", "fan")


def test_a_worker_that_an_ended_run_paused_is_given_back_by_the_next() -> None:
    cluster = Cluster("IDLE+DRAIN", UPGRADE)

    assert worker_pause.paused(cluster.nodes()) == ["n1"]
    changed, before = Worker("n1", cluster).pause(check_mode=False)

    assert not changed
    assert Worker("n1", cluster).give_back(before, restarted=False)
    assert worker_pause.paused(cluster.nodes()) == []


def test_a_slurmd_that_was_restarted_has_to_register() -> None:
    cluster = Cluster()
    _, before = Worker("n1", cluster).pause(check_mode=False)

    with pytest.raises(PauseError, match="slurmd was restarted and has not registered"):
        Worker("n1", cluster).give_back(before, restarted=True)
    cluster.started = "2026-11-21T15:00:00"

    assert Worker("n1", cluster).give_back(before, restarted=True)


def test_a_worker_that_slurmctld_does_not_hear_keeps_paused() -> None:
    cluster = Cluster()
    _, before = Worker("n1", cluster).pause(check_mode=False)
    cluster.shown = "DOWN*+DRAIN"

    with pytest.raises(PauseError, match="cannot reach slurmd"):
        Worker("n1", cluster).give_back(before, restarted=False)
    assert cluster.shown == "DOWN*+DRAIN"


def test_one_that_was_not_heard_before_is_not_waited_for() -> None:
    cluster = Cluster("DOWN*")
    _, before = Worker("n1", cluster).pause(check_mode=False)
    cluster.shown = "DOWN*+DRAIN"

    assert Worker("n1", cluster).give_back(before, restarted=True)


@pytest.mark.parametrize(
    ("name", "job", "words"),
    [
        ("n1", Job("7", "NODE_FAIL", "main", ("n1",)), "job 7 was ended as NODE_FAIL"),
        ("n1", GIVEN_UP, "job 7 was removed from its nodes and requeued"),
        ("head", RUNS, "job 8 was forgotten"),
    ],
)
def test_a_job_that_was_lost_is_named(tmp_path: pathlib.Path, name: str, job: Job, words: str) -> None:
    cluster = Cluster()
    cluster.written = str(tmp_path / "slurmctld.log")
    _, before = Worker(name, cluster).pause(check_mode=False)
    cluster.jobs = (job,)
    (tmp_path / "slurmctld.log").write_text(LINE if job is GIVEN_UP else "")

    with pytest.raises(PauseError, match=words):
        Worker(name, cluster).give_back(before, restarted=False)


def test_a_job_that_was_requeued_on_request_is_not_missed(tmp_path: pathlib.Path) -> None:
    """It was given up before the pause, ran again, and was then requeued by its owner."""
    cluster = Cluster()
    cluster.written = str(tmp_path / "slurmctld.log")
    (tmp_path / "slurmctld.log").write_text(LINE)
    _, before = Worker("n1", cluster).pause(check_mode=False)
    cluster.jobs = (GIVEN_UP,)

    assert Worker("n1", cluster).give_back(before, restarted=False)


def test_a_job_that_slurmctld_no_longer_shows_is_not_missed() -> None:
    cluster = Cluster(jobs=())

    assert not Worker("n1", cluster).give_back(Before(jobs=(RUNS,), at=time.time() - 31), restarted=False)
    with pytest.raises(PauseError, match="job 7 was forgotten"):
        Worker("n1", cluster).give_back(Before(jobs=(RUNS,)), restarted=False)


def test_a_worker_of_which_nothing_is_heard_is_not_taken_for_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    _, before = Worker("n1", cluster).pause(check_mode=False)
    monkeypatch.setattr(cluster, "nodes", dict)

    with pytest.raises(PauseError, match="slurmctld does not answer"):
        Worker("n1", cluster).pause(check_mode=False)
    with pytest.raises(PauseError, match="slurmctld does not answer"):
        Worker("n1", cluster).give_back(before, restarted=False)
