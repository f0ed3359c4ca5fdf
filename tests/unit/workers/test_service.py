"""Which workers are in service, which are not there, and which jobs are on them."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.slurm.answers import read_nodes
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress, expand
from ansible.module_utils.slurmstead.slurm.jobs import Job, State
from ansible.module_utils.slurmstead.workers import reasons
from ansible.module_utils.slurmstead.workers import service as worker_service
from ansible.module_utils.slurmstead.workers.service import Service, ServiceError, on, unready

OURS = "stead shutdown"
NODES = {
    "n1": {"State": "IDLE+DRAIN", "Reason": OURS},
    "n2": {"State": "MIXED+DRAIN", "Reason": "fan"},
    # 24.11 keeps the reason of a node that was resumed.
    "n3": {"State": "IDLE", "Reason": OURS},
    "n4": {"State": "DOWN*+DRAIN", "Reason": OURS},
    "n5": {"State": "IDLE*", "Reason": ""},
}


def test_a_worker_that_is_not_there_is_named_with_its_state() -> None:
    assert unready(NODES, ["n1", "n4", "n5", "n9"]) == ["n4 (DOWN*+DRAIN)", "n5 (IDLE*)", "n9 (unknown to slurmctld)"]


def test_a_worker_is_waited_for_until_its_health_check_is_content_but_not_until_a_person_is() -> None:
    unfit = {"State": "IDLE+DRAIN", "Reason": "slurmstead: the clock is 12 s off"}

    assert unready({"n1": unfit, "n2": NODES["n2"]}, ["n1", "n2"]) == [f"n1 (IDLE+DRAIN, {unfit['Reason']})"]


def test_only_jobs_that_are_on_the_workers_count() -> None:
    here, there, waits = (
        Job("1", "RUNNING", "main", ("n1", "n2")),
        Job("2", "RUNNING", "main", ("n3",)),
        Job("3", "PENDING"),
    )

    assert on(State((here, there, waits)), ["n2", "n4"]) == (here,)


def test_the_states_of_many_workers_are_judged_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []
    real = reasons.is_drained
    monkeypatch.setattr(reasons, "is_drained", lambda shown: judged.append(1) or real(shown))
    monkeypatch.setattr(Cluster, "state", lambda self: State(()))
    many = Cluster(**{f"n{number}": "State=IDLE Reason=x" for number in range(200)})

    done = Service(many.lines, OURS, many).take_out("refuse", 1, check_mode=True)

    assert done.changed
    assert len(judged) <= 3 * 200


class Cluster(Slurm):
    """A slurmctld that does as it is told; each worker has the words of its line."""

    def __init__(self, **lines: str) -> None:
        self.lines = lines
        self.resumed: list[str] = []

    def nodes(self) -> dict[str, dict[str, str]]:
        return read_nodes("\n".join(f"NodeName={name} {words}" for name, words in self.lines.items()))

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Resume; no administrator drains meanwhile."""
        self.update(compress(seen), "RESUME")
        return []

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        assert state == "RESUME"
        self.resumed.append(nodes)
        self.lines[nodes] = self.lines[nodes].replace("+DRAIN", "")


def cluster() -> Cluster:
    """Return the cluster after a shutdown: the first worker is up, the second not yet, the third is drained."""
    return Cluster(
        n1=f"State=IDLE+DRAIN SlurmdStartTime=2026-11-21T14:50:33 Reason={OURS} [root@2026-11-21T14:50:33]",
        n2="State=IDLE SlurmdStartTime=None",
        n3="State=IDLE+DRAIN SlurmdStartTime=2026-11-21T14:50:33 Reason=fan [root@2026-11-21T14:50:33]",
    )


def test_workers_are_resumed_by_their_reason_and_who_is_not_fit_yet_is_named_at_once() -> None:
    slurm = cluster()

    done = Service(["n1", "n2", "n3"], OURS, slurm).resume(check_mode=False)

    assert slurm.resumed == ["n1"]
    assert done.changed
    assert done.said == ("n1 resumed", "waits for n2 (IDLE, slurmd has not registered yet)")
    assert not Service(["n1", "n2", "n3"], OURS, slurm).resume(check_mode=False).changed


def test_a_worker_in_power_saving_is_resumed_without_being_waited_for() -> None:
    slurm = cluster()
    slurm.lines["n4"] = f"State=IDLE+DRAIN+POWERED_DOWN SlurmdStartTime=None Reason={OURS} [root@2026-11-21T14:50:33]"
    slurm.lines["n5"] = "State=IDLE+DRAIN+POWERED_DOWN SlurmdStartTime=None Reason=fan [root@2026-11-21T14:50:33]"

    done = Service(["n1", "n4", "n5"], OURS, slurm).resume_asleep(check_mode=False)

    assert slurm.resumed == ["n4"]
    assert (done.said, done.asleep) == (("n4 resumed",), ("n4", "n5"))


BOOTING = f"State=IDLE+DRAIN+POWERED_DOWN NodeAddr=10.0.0.4 Reason={OURS} [root@2026-11-21T14:50:33]"


def test_a_worker_in_power_saving_that_is_on_is_not_resumed_as_one_that_sleeps() -> None:
    slurm = Cluster(n4=BOOTING, n5=BOOTING.replace("10.0.0.4", "10.0.0.5"))

    done = Service(["n4", "n5"], OURS, slurm, "10.0.0.4".__eq__).resume_asleep(check_mode=False)

    assert slurm.resumed == ["n5"]
    assert done.asleep == ("n5",)


@pytest.mark.parametrize(("looks", "registered"), [(3, True), (1000, False)])
def test_a_worker_that_boots_is_resumed_after_it_has_registered(
    monkeypatch: pytest.MonkeyPatch, looks: int, registered: bool
) -> None:
    """A job that comes between would make slurmctld wait for another boot, until ResumeTimeout."""
    monkeypatch.setattr(worker_service, "REGISTER", 0.2)
    monkeypatch.setattr(worker_service, "PAUSE", 0.01)
    slurm, asked, states = Cluster(n4=BOOTING), [], []

    def answers(address: str) -> bool:
        asked.append(address)
        if len(asked) == looks:
            slurm.lines["n4"] = BOOTING.replace("+POWERED_DOWN", "")
        return True

    monkeypatch.setattr(slurm, "resume", lambda seen: states.append(seen["n4"]["State"]) or [])
    Service(["n4"], OURS, slurm, answers).resume(check_mode=False)

    assert states == ["IDLE+DRAIN" if registered else "IDLE+DRAIN+POWERED_DOWN"]


def test_a_dry_run_resumes_nobody() -> None:
    slurm = cluster()

    assert Service(["n1"], OURS, slurm).resume(check_mode=True).said == ("n1 would be resumed",)
    assert slurm.resumed == []


def test_a_worker_whose_state_is_that_of_another_day_is_not_in_service() -> None:
    with pytest.raises(ServiceError, match=r"not in service after 0 min: n2 \(IDLE, slurmd has not registered yet\)"):
        Service(["n1", "n2"], OURS, cluster()).bring_back(0, check_mode=False)


def test_a_worker_that_somebody_drained_stays_drained() -> None:
    slurm = cluster()

    done = Service(["n1", "n3"], OURS, slurm).bring_back(0, check_mode=False)

    assert slurm.resumed == ["n1"]
    assert done.said == ("n1 in service", "n3 stays drained: fan")


def test_a_worker_that_a_person_put_down_is_neither_drained_nor_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cluster, "state", lambda self: State(()))
    slurm = Cluster(n1="State=DOWN Reason=bad DIMM [root@2026-11-21T14:50:33]")

    assert not Service(["n1"], OURS, slurm).take_out("refuse", 1, check_mode=False).changed
    assert Service(["n1"], OURS, slurm).bring_back(0, check_mode=False).said == ("n1 stays down: bad DIMM",)
    assert slurm.resumed == []


def test_a_machine_that_slept_while_the_key_changed_is_not_waited_for() -> None:
    """Its slurmd cannot register before it has the key."""
    slurm = Cluster(n1="State=IDLE+DRAIN+POWERED_DOWN Reason=missed while asleep: rotate-key [root@2026-11-21T14:50]")

    done = Service(["n1"], OURS, slurm).bring_back(0, check_mode=False)

    assert done.said == ("n1 stays drained: missed while asleep: rotate-key",)
    assert slurm.resumed == []


def test_without_slurmctld_nobody_is_resumed() -> None:
    with pytest.raises(ServiceError, match="slurmctld does not answer"):
        Service(["n1"], OURS, Cluster()).resume(check_mode=False)


class Busy(Slurm):
    """A slurmctld with a job that does not end; it is told in words what it is to do."""

    def __init__(self, answers: tuple[State, ...] = (), **shown: tuple[str, str]) -> None:
        self.shown = dict(shown)
        self.answers_left = list(answers)
        self.told: list[tuple[str, str, str]] = []

    def state(self) -> State:
        return self.answers_left.pop(0) if self.answers_left else State((Job("7", "RUNNING", "main", ("n1",)),))

    def nodes(self) -> dict[str, dict[str, str]]:
        return {name: {"State": state, "Reason": reason} for name, (state, reason) in self.shown.items()}

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Resume; no administrator drains meanwhile."""
        self.update(compress(seen), "RESUME")
        return []

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        self.told.append((nodes, state, reason))
        for name in expand(nodes):
            self.shown[name] = ("IDLE+DRAIN", reason) if state == "DRAIN" else ("IDLE", "")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing."""
    monkeypatch.setattr(worker_service, "SURE", 0.0)
    monkeypatch.setattr(worker_service, "PAUSE", 0.0)


def test_a_run_that_gives_up_gives_back_what_one_that_was_killed_had_drained(impatient: None) -> None:
    slurm = Busy(n1=("MIXED+DRAIN", OURS), n2=("IDLE+DRAIN", "fan"))

    with pytest.raises(ServiceError, match="the workers accept jobs as before"):
        Service(["n1", "n2"], OURS, slurm).take_out("wait", -1, check_mode=False)

    assert slurm.told == [("n1", "RESUME", "")]


def test_a_run_that_gives_up_leaves_an_unfit_worker_to_its_health_check(impatient: None) -> None:
    unfit = "slurmstead: share /share does not answer"
    slurm = Busy(n1=("MIXED", ""), n2=("IDLE+DRAIN", unfit))

    with pytest.raises(ServiceError, match="the workers accept jobs as before"):
        Service(["n1", "n2"], OURS, slurm).take_out("wait", -1, check_mode=False)

    assert slurm.told[1:] == [("n1", "RESUME", ""), ("n2", "DRAIN", unfit)]


def test_a_run_that_gives_up_leaves_what_somebody_drained_meanwhile(
    impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm = Busy(n1=("MIXED", ""), n2=("IDLE", ""))
    monkeypatch.setattr("time.sleep", lambda _: slurm.shown.update(n2=("IDLE+DRAIN", "fan")))

    with pytest.raises(ServiceError, match="the workers accept jobs as before"):
        Service(["n1", "n2"], OURS, slurm).take_out("wait", -1, check_mode=False)

    assert slurm.told == [("n[1-2]", "DRAIN", OURS), ("n1", "RESUME", "")]


def test_a_refusal_names_what_a_run_that_was_killed_has_left_drained() -> None:
    slurm = Busy(n1=("MIXED+DRAIN", OURS))

    with pytest.raises(ServiceError, match=rf"because of job 7 .*; still drained .* \({OURS}\): n1"):
        Service(["n1"], OURS, slurm).take_out("refuse", 0, check_mode=False)

    assert slurm.told == []


def test_without_an_answer_about_the_workers_none_counts_as_out_of_service() -> None:
    slurm = Busy(answers=(State(),))

    with pytest.raises(ServiceError, match="slurmctld does not answer"):
        Service(["n1"], OURS, slurm).take_out("wait", 0, check_mode=False)


def test_jobs_are_waited_for_while_slurmctld_is_restarted(impatient: None) -> None:
    runs = State((Job("7", "RUNNING", "main", ("n1",)),))
    slurm = Busy(answers=(runs, runs, State(heard=False), State()), n1=("MIXED", ""))

    done = Service(["n1"], OURS, slurm).take_out("wait", 60, check_mode=False)

    assert done.said[0] == f"n1 drained: {OURS}"
    assert slurm.answers_left == []


def test_what_a_killed_run_left_behind_undoes_nothing_once_another_run_holds_the_cluster(
    impatient: None, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    lock = tmp_path / "lock"
    lock.write_text("ann since noon")
    monkeypatch.setattr(cluster_lock, "PATH", lock)
    slurm = Busy(n1=("MIXED", ""))
    service = Service(["n1"], OURS, slurm)
    lock.write_text("bob since one")

    with pytest.raises(ServiceError, match="bob since one has taken over the cluster lock"):
        service.take_out("wait", -1, check_mode=False)

    assert slurm.told == [("n1", "DRAIN", OURS)]
