"""A change arrives and is proven, or everything is as it was; what a run left undone the next one does.

slurmctld, and the clients that ask it, are imitated; what they really do is held on machines (tests/lab/gate).
"""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import pytest

from ansible.module_utils.slurmstead.change import change as change_change
from ansible.module_utils.slurmstead.change import workers as change_workers
from ansible.module_utils.slurmstead.change.change import FailedError, Outcome, RefusedError, Run
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.gate import gate as gate_gate
from ansible.module_utils.slurmstead.gate import host as gate_host
from ansible.module_utils.slurmstead.gate.gate import Passage
from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job, State
from ansible.module_utils.slurmstead.workers.reasons import CHANGE

CONF = """ClusterName=c
SelectTypeParameters=CR_Core
NodeName=n1 NodeAddr=10.0.0.1 CPUs=4
NodeName=n2 NodeAddr=10.0.0.2 CPUs=4
PartitionName=main Nodes=ALL
"""
BAD = "# makes slurmctld ill\nMaxJobCount=1\n"
GRES = "gres/core count reported lower than configured (0 < 4)"
LOADED = {"PartitionName=main": {"State": "UP"}}
RUNNING = Job("7", "RUNNING", "main", ("n1",))


class Cluster:
    """slurmctld, its clients and its files."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.done: list[str] = []
        self.up = False
        self.memory = ""
        self.jobs: list[Job] = []
        self.drained: dict[str, str] = {}
        self.slurmd_started = "None"
        self.reason: dict[str, str] = {}
        self.release = "22.05.8"
        self.started = 0.0
        self.older_than_munged = False
        self.closed = False

    # The service.

    def restart(self) -> None:
        """Start it with what is published."""
        self.done.append("restart")
        self.older_than_munged = False
        self._read()

    def _read(self) -> None:
        self.memory = (self.directory / "slurm.conf").read_text()
        self.up = "ill" not in self.memory

    def state(self) -> str:
        """As systemd says."""
        return "running" if self.up else "failed"

    def words(self) -> str:
        """Its journal."""
        return "slurmctld: fatal: too ill to run"

    def outlived_munged(self) -> bool:
        """As systemd says."""
        return self.older_than_munged

    # The clients.

    def version(self) -> str:
        """As installed."""
        return self.release

    def answers(self) -> bool:
        """Ping."""
        return self.up

    def queue(self) -> State:
        """Its jobs."""
        return State(tuple(self.jobs), self.up)

    def unknown_users(self) -> list[str]:
        return []

    def nodes(self) -> dict[str, dict[str, str]]:
        """As scontrol shows them."""
        shown = {"SlurmdStartTime": self.slurmd_started}
        state = {name: "IDLE+DRAIN" if name in self.drained else "IDLE" for name in conf_model.read(self.memory).nodes}
        reason = {"Reason": "", "ReasonSetByUser": "", "ReasonChangedAt": "", **self.reason}
        why = {name: {"Reason": text} for name, text in self.drained.items()}
        return {name: {**shown, **reason, **why.get(name, {}), "State": state[name]} for name in state}

    def shown(self) -> dict[str, dict[str, str]]:
        """As scontrol shows them."""
        return {"PartitionName=main": {"State": "DOWN" if self.closed else "UP"}} if self.up else {}

    def started_at(self) -> float:
        """Long ago, unless a test says when."""
        return self.started

    def hashes(self) -> str:
        """As scontrol shows them."""
        return "Match" if self.memory == published(self) else f"Different Ours=0x1 Slurmctld={len(self.memory):#x}"

    def reconfigure(self) -> str:
        """Reread."""
        self.done.append("reconfigure")
        self._read()
        return "" if self.up else "Zero Bytes were transmitted or received"

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Resume; no administrator drains meanwhile."""
        self.update(compress(seen), "RESUME")
        return []

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        """Drain or resume; the job of a drained node ends."""
        self.done.append(f"{state} {nodes}")
        if state == "DRAIN":
            self.drained[nodes] = reason
            self.jobs.clear()
        else:
            self.drained.pop(nodes, None)


class Clients:
    """The questions to a cluster; `state` of the service and of the queue have one name."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, "queue" if name == "state" else name)


@pytest.fixture
def cluster(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster whose gate lets everything pass."""
    monkeypatch.setattr(gate_gate, "passage", lambda *_: Passage(shown=LOADED))
    monkeypatch.setattr(gate_host, "check", lambda *_: [])
    monkeypatch.setattr(change_change, "HEALTHY", 0.2)
    monkeypatch.setattr(change_change, "PAUSE", 0.01)
    monkeypatch.setattr(change_change, "LOOK", 0.0)
    monkeypatch.setattr(change_change, "SETTLE", 0.0)
    return Cluster(tmp_path)


def run(cluster: Cluster, text: str = CONF, check: bool = False, when_idle: bool = False) -> Outcome:
    clients: Any = Clients(cluster)
    cluster.done.clear()
    return Run({"slurm.conf": text}, Store(cluster.directory), cluster, clients).go(check, when_idle)


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    """A cluster that was installed."""
    run(cluster)
    cluster.done.clear()
    return cluster


def published(cluster: Cluster) -> str:
    return (cluster.directory / "slurm.conf").read_text()


def test_the_first_run_starts_it_and_the_second_does_nothing(cluster: Cluster) -> None:
    assert run(cluster).plan == ["first installation: start slurmctld"]
    assert cluster.done == ["restart"]

    second = run(cluster)

    assert (second.changed, second.plan, cluster.done) == (False, [], [])


def test_a_dry_run_says_the_plan_and_changes_nothing(running: Cluster) -> None:
    seen = run(running, CONF + "MaxJobCount=5\n", check=True)

    assert seen.plan[0] == "MaxJobCount: not set → 5: restart slurmctld"
    assert (running.done, published(running)) == ([], CONF)


def test_a_dry_run_before_the_first_run_needs_no_slurmctld(cluster: Cluster) -> None:
    cluster.release = ""

    assert run(cluster, check=True).changed
    assert list(cluster.directory.iterdir()) == []


@pytest.mark.parametrize(
    ("lines", "done"),
    [
        ("# only a comment\n", []),
        ("SlurmctldDebug=debug\n", ["reconfigure"]),
        ("MaxJobCount=5\n", ["restart", "reconfigure"]),
        # Each slurmd is restarted and fetches the files itself.
        ("GresTypes=gpu\n", ["restart"]),
    ],
)
def test_no_more_is_done_than_it_takes(running: Cluster, lines: str, done: list[str]) -> None:
    assert run(running, CONF + lines).changed
    assert (running.done, published(running)) == (done, CONF + lines)
    assert not run(running, CONF + lines).changed
    assert running.done == []


def test_an_answer_that_comes_too_late_is_no_verdict(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["slurm_reconfigure error: Socket timed out on send/recv operation", ""]
    reconfigure = running.reconfigure
    monkeypatch.setattr(running, "reconfigure", lambda: reconfigure() or answers.pop(0))
    text = CONF + "SlurmctldDebug=debug\n"

    assert run(running, text).changed
    assert (running.done, published(running), answers) == (["reconfigure", "reconfigure"], text, [])


def test_a_set_that_does_not_work_is_taken_back(running: Cluster) -> None:
    with pytest.raises(FailedError) as failed:
        run(running, CONF + BAD)

    assert "slurmctld is not running; slurmctld said: too ill to run" in str(failed.value)
    assert "The last good configuration is active again, and slurmctld runs with it" in str(failed.value)
    assert (published(running), running.memory, running.up) == (CONF, CONF, True)
    assert not run(running).changed


def test_a_set_that_loses_a_job_is_taken_back(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    running.jobs = [RUNNING]
    real = running.restart
    monkeypatch.setattr(running, "restart", lambda: (real(), running.jobs.clear()))

    with pytest.raises(FailedError, match=r"job 7 \(running on n1\) was forgotten"):
        run(running, CONF + "MaxJobCount=5\n")
    assert published(running) == CONF


def test_a_set_in_which_slurmctld_misses_a_node_is_taken_back(
    running: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "nodes", dict)

    with pytest.raises(FailedError, match=r"slurmctld does not know n\[1-3\]"):
        run(running, CONF + "NodeName=n3 NodeAddr=10.0.0.3 CPUs=1\n")


def test_mistakes_are_named_and_nothing_is_touched(running: Cluster) -> None:
    with pytest.raises(RefusedError, match="slurm.conf line 6: `NodeName=n1`: node n1 appears twice"):
        run(running, CONF + "NodeName=n1\n")
    assert (running.done, published(running)) == ([], CONF)


def test_what_hurts_jobs_is_refused_with_the_way_to_do_it(running: Cluster) -> None:
    running.jobs = [RUNNING]

    with pytest.raises(RefusedError) as refused:
        run(running, CONF.replace("CR_Core", "CR_CPU"))

    assert "job 7 (running on n1)" in str(refused.value)
    assert "slurm_when_idle: true" in str(refused.value)
    assert (running.done, published(running)) == ([], CONF)


@pytest.mark.parametrize("which", [1, 2], ids=["new files", "old files"])
def test_a_job_that_starts_while_the_gate_is_busy_counts(
    running: Cluster, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    tried: list[int] = []

    def passage(*_: Any) -> Passage:
        tried.append(which)
        running.jobs = [RUNNING] if len(tried) == which else []
        return Passage(shown=LOADED)

    monkeypatch.setattr(gate_gate, "passage", passage)

    with pytest.raises(RefusedError, match=r"job 7 \(running on n1\)"):
        run(running, CONF.replace("CR_Core", "CR_CPU"))
    assert (running.done, published(running)) == ([], CONF)


@pytest.mark.parametrize("when_idle", [False, True])
def test_what_could_hurt_jobs_that_are_not_shown_is_refused(
    running: Cluster, when_idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "queue", lambda: State(heard=False))

    with pytest.raises(RefusedError, match="does not show its queue"):
        run(running, CONF.replace("CR_Core", "CR_CPU"), when_idle=when_idle)
    assert (running.done, published(running)) == ([], CONF)


def test_a_run_that_may_wait_drains_changes_and_resumes(running: Cluster) -> None:
    running.jobs = [RUNNING]

    run(running, CONF.replace("CR_Core", "CR_CPU"), when_idle=True)

    assert running.done == ["DRAIN n1", "restart", "reconfigure", "RESUME n1"]
    assert "CR_CPU" in running.memory


def test_a_job_that_starts_while_a_run_that_waited_tries_its_files_is_waited_for(
    running: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.jobs.append(RUNNING)
    tried: list[int] = []

    def passage(*_: object) -> Passage:
        tried.append(len(running.jobs))
        if len(tried) == 2:
            running.jobs.append(Job("8", "RUNNING", "main", ("n2",)))
        return Passage(shown=LOADED)

    monkeypatch.setattr(gate_gate, "passage", passage)

    run(running, CONF.replace("CR_Core", "CR_CPU"), when_idle=True)

    assert tried[:3] == [1, 0, 0]
    assert running.done == ["DRAIN n1", "DRAIN n2", "restart", "reconfigure", "RESUME n[1-2]"]


def test_a_run_that_waits_changes_nothing_once_another_holds_the_cluster(
    running: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    lock = tmp_path / "lock"
    monkeypatch.setattr(cluster_lock, "PATH", lock)
    monkeypatch.setattr(time, "sleep", lambda _: lock.write_text("bob since one"))
    running.jobs = [RUNNING]

    with pytest.raises(RefusedError, match="bob since one has taken over the cluster lock"):
        run(running, CONF.replace("CR_Core", "CR_CPU"), when_idle=True)

    assert (running.done, published(running)) == (["DRAIN n1"], CONF)


def test_what_was_drained_to_wait_is_resumed_by_the_next_run(running: Cluster) -> None:
    Store(running.directory).note(change_workers.DRAINED, dict.fromkeys(["n1", "n2"], CHANGE))
    running.drained = {"n1": "fan", "n2": CHANGE}

    run(running)
    assert running.done == ["RESUME n2"]
    run(running)
    assert running.done == []


def test_nothing_is_forgotten_while_slurmctld_shows_no_nodes(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(running.directory)
    store.note(change_workers.DRAINED, {"n1": CHANGE})
    store.note(change_workers.RESTARTS, {"n2": 1.0})
    running.drained = {"n1": CHANGE}
    workers = change_workers.Workers(store, running)
    with monkeypatch.context() as silent:
        silent.setattr(running, "nodes", dict)
        workers.release()
        assert workers.outstanding() == ["n2"]

    workers.release()

    assert running.drained == {}
    assert workers.outstanding() == ["n2"]


def test_a_restart_that_was_noted_while_the_clock_was_ahead_is_needed_once(running: Cluster) -> None:
    store = Store(running.directory)
    store.note(change_workers.RESTARTS, {"n2": time.time() + 86400})

    assert change_workers.Workers(store, running).outstanding() == ["n2"]
    assert store.recall(change_workers.RESTARTS)["n2"] <= time.time()


@pytest.mark.parametrize("killed_in", ["restart", "_prove"])
def test_a_run_that_was_killed_is_finished_by_the_next(
    running: Cluster, killed_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = CONF + "MaxJobCount=5\n"

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(*((running, "restart") if killed_in == "restart" else (Run, "_prove")), die)
        with pytest.raises(KeyboardInterrupt):
            run(running, new)
    assert published(running) == new, "it was killed after it had published"

    seen = run(running, new)

    assert "an earlier run was interrupted before its configuration was proven" in seen.plan[0]
    assert (running.done, running.memory) == (["restart", "reconfigure"], new)
    assert not run(running, new).changed


def test_a_change_that_was_killed_can_be_taken_back(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Run, "_prove", die)
        with pytest.raises(KeyboardInterrupt):
            run(running, CONF + "MaxJobCount=5\n")
    assert "MaxJobCount" in running.memory, "slurmctld had read it"

    run(running)

    assert running.memory == CONF


def test_a_dead_daemon_is_started_with_the_good_set(running: Cluster) -> None:
    running.up = False

    assert run(running).plan == ["slurmctld does not answer: restart slurmctld"]
    assert running.up


def test_a_slurmctld_that_may_ask_no_node_is_started_again_once(running: Cluster) -> None:
    running.older_than_munged = True

    assert run(running, check=True).plan == run(running).plan == ["slurmctld is older than munged: restart slurmctld"]
    assert running.done[0] == "restart"
    assert not run(running).changed


def test_a_change_starts_a_slurmctld_again_that_may_ask_no_node(running: Cluster) -> None:
    running.older_than_munged = True
    text = CONF + "SlurmctldDebug=debug\n"

    assert "slurmctld is older than munged: restart slurmctld" in run(running, text).plan
    assert running.done == ["restart", "reconfigure"]
    assert not run(running, text).changed


def test_a_slurmctld_that_has_read_an_edit_since_taken_back_is_started_again(running: Cluster) -> None:
    running.memory = CONF + "MaxJobCount=5\n"

    assert run(running).plan == ["slurmctld has not loaded its files: restart slurmctld"]
    assert running.memory == CONF
    assert not run(running).changed


def test_jobs_of_a_dead_slurmctld_count_too(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    running.up = False
    monkeypatch.setattr(gate_gate, "passage", lambda *_: Passage(queue=State((RUNNING,))))

    with pytest.raises(RefusedError, match=r"job 7 \(running on n1\)"):
        run(running, CONF.replace("CR_Core", "CR_CPU"))


def test_a_file_that_somebody_removed_comes_back(running: Cluster) -> None:
    running.jobs = [RUNNING]
    (running.directory / "slurm.conf").unlink()

    run(running)

    assert published(running) == CONF
    assert not run(running).changed


@pytest.mark.parametrize("lines", ["SlurmctldDebug=debug\n", "SelectType=select/linear\n"])
def test_an_edit_by_hand_is_put_right(running: Cluster, lines: str) -> None:
    running.jobs = [RUNNING]
    path = running.directory / "slurm.conf"
    path.write_text(CONF + lines)
    os.utime(path.resolve(), (time.time() + 60,) * 2)

    seen = run(running)

    assert (published(running), running.memory) == (CONF, CONF)
    assert running.done, "slurmctld may have read it"
    assert "files found are in" in seen.warnings[0]
    assert not run(running).changed


@pytest.mark.parametrize("age", [0, 3600], ids=["written", "copied with its date"])
def test_an_edit_by_hand_that_is_wanted_afterwards_is_read(running: Cluster, age: int) -> None:
    wanted = CONF + "MaxJobCount=5\n"
    path = running.directory / "slurm.conf"
    path.write_text(wanted)
    os.utime(path.resolve(), (time.time() - age,) * 2)
    running.started = time.time() - 60

    assert run(running, wanted).plan[0] == "MaxJobCount: not set → 5: restart slurmctld"
    assert running.memory == wanted
    assert not run(running, wanted).changed


def test_slurmd_is_named_until_it_was_restarted(running: Cluster) -> None:
    text = CONF + "SlurmdPidFile=/run/x\n"

    assert run(running, text).restart_slurmd == ["n1", "n2"]
    assert run(running, text).restart_slurmd == ["n1", "n2"], "nobody has restarted them"
    running.slurmd_started = time_of_slurm(5)
    assert run(running, text).restart_slurmd == []
    assert not (running.directory / "slurmstead" / "slurmd-restarts.json").exists()


def time_of_slurm(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + seconds))


def test_slurmd_is_named_until_slurm_has_taken_its_node_back(running: Cluster) -> None:
    """slurmctld 22.05 drains a node whose slurmd has not read of its new GRES, and leaves it so."""
    text = CONF + "SlurmdPidFile=/run/x\n"
    run(running, text)
    running.slurmd_started = time_of_slurm(9)
    running.drained = {"n1": GRES}
    running.reason = {
        "ReasonSetByUser": "slurm",
        "ReasonChangedAt": time_of_slurm(5),
    }

    assert run(running, text).restart_slurmd == ["n1"]
    running.drained.clear()
    assert run(running, text).restart_slurmd == []


def test_slurmd_is_named_where_slurm_gave_a_number_twice_until_the_node_is_taken_back(running: Cluster) -> None:
    running.slurmd_started = time_of_slurm(-60)
    running.drained = {"n2": "Duplicate jobid"}
    running.reason = {
        "ReasonSetByUser": "root",
        "ReasonChangedAt": time_of_slurm(-5),
    }

    assert run(running).restart_slurmd == ["n2"]
    running.slurmd_started = time_of_slurm(0)
    assert run(running).restart_slurmd == ["n2"], "it is still drained"
    running.drained.clear()
    assert run(running).restart_slurmd == []


def test_slurmd_is_named_at_once_where_a_change_was_owed_before_slurm_gave_a_number_twice(running: Cluster) -> None:
    text = CONF + "SlurmdPidFile=/run/x\n"
    run(running, text)
    running.slurmd_started = time_of_slurm(5)
    running.drained = {"n2": "Duplicate jobid"}
    running.reason = {
        "ReasonSetByUser": "root",
        "ReasonChangedAt": time_of_slurm(9),
    }

    assert run(running, text).restart_slurmd == ["n2"]


def test_slurmd_is_named_where_a_job_that_waited_has_the_number_of_another(
    running: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts when the workers have said which jobs they have, and its node is drained then."""
    run(running)
    running.jobs = [RUNNING, Job("8", "PENDING", "main", ())]
    running.slurmd_started = time_of_slurm(5)
    running.started = time.time() - 60

    def settle(seconds: float) -> None:
        running.drained = {"n2": "Duplicate jobid"}
        running.reason = {"ReasonSetByUser": "slurm", "ReasonChangedAt": time_of_slurm(0)}

    monkeypatch.setattr(change_change.time, "sleep", settle)

    assert run(running).restart_slurmd == ["n2"]
    assert running.done == ["reconfigure"]


def test_workers_say_once_after_a_start_of_slurmctld_which_jobs_they_have(running: Cluster) -> None:
    running.jobs = [RUNNING]
    running.started = time.time() - 5
    assert not run(running).changed
    assert running.done == [], "slurmctld would not listen yet"
    running.started -= 60
    assert not run(running, check=True).changed
    assert running.done == [], "a dry run"
    running.closed = True
    run(running)
    assert running.done == [], "a partition would be open again"
    running.closed = False
    assert not run(running).changed
    assert running.done == ["reconfigure"]
    assert not run(running).changed
    assert running.done == []
    running.started += 20
    run(running)
    assert running.done == ["reconfigure"], "it was started again"
    running.started, running.release = running.started + 5, "24.11.5"
    run(running)
    assert running.done == [], "a reconfigure would replace daemons"


def test_workers_without_jobs_have_nothing_to_say(running: Cluster) -> None:
    running.started = time.time() - 60

    run(running)

    assert running.done == []


def test_files_of_before_are_the_first_good_set(cluster: Cluster) -> None:
    (cluster.directory / "slurm.conf").write_text(CONF)
    cluster.up, cluster.memory = True, CONF

    with pytest.raises(FailedError, match="The last good configuration is active again"):
        run(cluster, CONF + BAD)
    assert published(cluster) == CONF
