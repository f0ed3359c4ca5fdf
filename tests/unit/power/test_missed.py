"""Machines that sleep during a command are woken, or get no job until it has been done on them."""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Mapping

import pytest

from ansible.module_utils.slurmstead.power import missed
from ansible.module_utils.slurmstead.power.missed import Sleepers
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.workers.drains import Remembering

ASLEEP, WAKING, IDLE = "IDLE+POWERED_DOWN", "MIXED+POWERING_UP", "IDLE"


class Controller(Slurm):
    """What slurmctld shows; POWER_UP makes a node wake, and it has registered at the next look."""

    def __init__(self, states: Mapping[str, str], reasons: Mapping[str, str] | None = None) -> None:
        given = reasons or {}
        self.shown = {
            name: {"State": state, "Reason": given.get(name, ""), "NodeAddr": name} for name, state in states.items()
        }
        self.resumed: list[str] = []
        self.woken: set[str] = set()

    def nodes(self) -> dict[str, dict[str, str]]:
        return {name: dict(fields) for name, fields in self.shown.items()}

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        fields = self.shown[nodes]
        kept = fields["State"].replace("+DRAIN", "")
        self.shown[nodes] = {**fields, "State": f"{kept}+{state}", "Reason": reason}

    def wake(self, names: object) -> None:
        for name in list(names):  # type: ignore[call-overload]
            self.woken.add(name)
            self.shown[name]["State"] = self.shown[name]["State"].replace("POWERED_DOWN", "POWERING_UP")

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        self.resumed += seen
        return []


class Nodes(Remembering, Controller):
    """The same, as the module uses it."""


@pytest.fixture(autouse=True)
def short(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed, "FILE", tmp_path / "state" / "missed.json")
    monkeypatch.setattr(missed, "PAUSE", 0.01)
    monkeypatch.setattr(missed, "REGISTER", 0.02)


def sleepers(slurm: Slurm, operation: str = "up", answering: str = "") -> Sleepers:
    return Sleepers(["node1", "node2", "node3"], operation, slurm, lambda address: address in answering.split())


def test_sleepers_get_no_job_until_the_command_has_been_done_there() -> None:
    slurm = Nodes({"node1": IDLE, "node2": ASLEEP, "node3": ASLEEP, "other": ASLEEP})
    found = sleepers(slurm).begin(wake=False, deadline=0, check_mode=False)

    assert found.asleep == ("node2", "node3")
    assert slurm.shown["node2"]["State"] == "IDLE+POWERED_DOWN+DRAIN"
    assert slurm.shown["node3"]["Reason"] == "missed while asleep: up"
    assert (slurm.shown["node1"]["State"], slurm.shown["other"]["State"]) == (IDLE, ASLEEP)


def test_a_second_command_adds_to_what_is_missing_and_the_same_one_does_not() -> None:
    slurm = Nodes({"node2": ASLEEP})
    for operation in ("rotate-key", "upgrade", "rotate-key"):
        sleepers(slurm, operation).begin(wake=False, deadline=0, check_mode=False)

    assert slurm.shown["node2"]["Reason"] == "missed while asleep: rotate-key, upgrade"


@pytest.mark.parametrize("state", [f"{ASLEEP}+DRAIN", "DOWN+POWERED_DOWN"])
def test_what_a_person_took_out_of_service_keeps_its_reason(state: str) -> None:
    slurm = Nodes({"node2": state}, {"node2": "fan"})
    found = sleepers(slurm).begin(wake=False, deadline=0, check_mode=False)
    sleepers(slurm).done(check_mode=False)

    assert found.asleep == ("node2",)
    assert (slurm.shown["node2"]["State"], slurm.shown["node2"]["Reason"]) == (state, "fan")
    assert slurm.resumed == []


def test_woken_machines_stay_in_service_and_one_that_does_not_wake_does_not() -> None:
    slurm = Nodes({"node1": IDLE, "node2": ASLEEP, "node3": ASLEEP})
    rising = Sleepers(["node1", "node2", "node3"], "up", slurm, lambda name: name in slurm.woken - {"node3"})
    found = rising.begin(wake=True, deadline=0, check_mode=False)

    assert (found.woken, found.asleep) == (("node2",), ("node3",))
    assert slurm.shown["node2"]["State"] == "IDLE+POWERING_UP"
    assert slurm.shown["node3"]["Reason"] == "missed while asleep: up"


@pytest.mark.parametrize("wake", [False, True])
def test_a_machine_that_is_on_although_slurm_powered_it_down_is_not_woken_but_noted(wake: bool) -> None:
    slurm = Nodes({"node2": ASLEEP, "node3": "IDLE+POWERING_DOWN"})
    found = sleepers(slurm, answering="node2 node3").begin(wake=wake, deadline=0, check_mode=False)

    assert slurm.shown["node2"]["State"] == "IDLE+POWERED_DOWN+DRAIN"
    assert slurm.shown["node3"]["State"] == "IDLE+POWERING_DOWN+DRAIN"
    assert (found.asleep, found.woken) == (("node3",), ())


def test_a_machine_that_goes_down_is_woken_when_it_is_down() -> None:
    slurm = Nodes({"node2": "IDLE+POWERING_DOWN"})
    timer = threading.Timer(0.1, lambda: slurm.shown["node2"].update(State=ASLEEP))
    timer.start()
    rising = Sleepers(["node2"], "up", slurm, lambda _: "POWERING_UP" in slurm.shown["node2"]["State"])
    found = rising.begin(wake=True, deadline=5, check_mode=False)

    assert found.woken == ("node2",)
    assert slurm.shown["node2"]["State"] == "IDLE+POWERING_UP"


def test_a_machine_that_slurm_wakes_already_is_waited_for() -> None:
    slurm = Nodes({"node2": WAKING})
    found = sleepers(slurm, answering="node2").begin(wake=False, deadline=0, check_mode=False)

    assert (found.woken, found.asleep) == (("node2",), ())
    assert slurm.shown["node2"]["Reason"] == ""


@pytest.mark.parametrize("state", [f"{ASLEEP}+DRAIN", "DOWN+POWERED_DOWN"])
def test_what_a_person_took_out_of_service_is_not_woken(state: str) -> None:
    """Slurm drops the drain of a node that does not wake."""
    slurm = Nodes({"node2": state}, {"node2": "fan"})
    found = sleepers(slurm).begin(wake=True, deadline=0, check_mode=False)

    assert (slurm.woken, found.asleep) == (set(), ("node2",))
    assert slurm.shown["node2"]["Reason"] == "fan"


@pytest.mark.parametrize("reason", ["ResumeTimeout reached", "missed while asleep: up : ResumeTimeout reached"])
def test_a_machine_that_did_not_wake_is_drained_again(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = Nodes({"node2": ASLEEP})
    sleepers(slurm).begin(wake=False, deadline=0, check_mode=False)
    given_up = {"State": "DOWN+POWERED_DOWN", "Reason": reason, "ReasonSetByUser": "slurm"}
    monkeypatch.setattr(missed, "wait_while", lambda what, *_: [slurm.shown["node2"].update(given_up), what()][1])
    found = sleepers(slurm).begin(wake=True, deadline=0, check_mode=False)

    assert slurm.woken == {"node2"}
    assert slurm.shown["node2"]["State"] == "DOWN+POWERED_DOWN+DRAIN"
    assert slurm.shown["node2"]["Reason"] == "missed while asleep: up"
    assert found.said == ("node2 did not wake; it gets no jobs until it is done",)


def test_a_drain_whose_reason_slurmctld_forgot_is_not_taken_back_if_a_person_set_it() -> None:
    slurm = Nodes({"node2": ASLEEP})
    sleepers(slurm).begin(wake=False, deadline=0, check_mode=False)
    slurm.update("node2", "DRAIN", "bad DIMM")
    slurm.shown["node2"] |= {"State": "IDLE+DRAIN", "Reason": ""}
    sleepers(slurm).done(check_mode=False)

    assert slurm.resumed == []
    assert slurm.nodes()["node2"]["Reason"] == "bad DIMM"
    assert missed.recorded() == {}


def test_check_mode_changes_nothing() -> None:
    slurm = Nodes({"node2": ASLEEP})
    found = sleepers(slurm).begin(wake=True, deadline=0, check_mode=True)

    assert found.asleep == ("node2",)
    assert slurm.shown["node2"]["State"] == ASLEEP


@pytest.mark.parametrize(
    ("reason", "operation", "after"),
    [
        ("missed while asleep: up", "up", "resumed"),
        ("missed while asleep: rotate-key", "up", "resumed"),
        ("missed while asleep: upgrade", "up", "missed while asleep: upgrade"),
        ("missed while asleep: rotate-key, upgrade", "up", "missed while asleep: upgrade"),
        ("missed while asleep: up, upgrade", "upgrade", "missed while asleep: up"),
    ],
)
def test_a_machine_gets_jobs_again_when_nothing_is_missing(reason: str, operation: str, after: str) -> None:
    slurm = Nodes({"node2": "IDLE+DRAIN"}, {"node2": reason})
    found = sleepers(slurm, operation).done(check_mode=False)

    assert (slurm.resumed == ["node2"]) is (after == "resumed")
    assert after in ("resumed", slurm.shown["node2"]["Reason"])
    assert found.changed is (after != reason)


def test_a_reason_that_slurmctld_forgot_at_the_boot_is_known_all_the_same() -> None:
    slurm = Nodes({"node2": ASLEEP, "node3": ASLEEP})
    sleepers(slurm).begin(wake=False, deadline=0, check_mode=False)
    slurm.shown["node2"] |= {"State": "IDLE+DRAIN", "Reason": ""}
    slurm.shown["node3"] |= {"State": "IDLE+DRAIN", "Reason": "fan"}
    shown = sleepers(slurm).show().missed
    sleepers(slurm).done(check_mode=False)

    assert shown == {"node2": ["up"], "node3": ["up"]}
    assert slurm.resumed == ["node2"]
    assert missed.recorded() == {}


def test_without_sleepers_nothing_changes() -> None:
    slurm = Nodes({"node1": IDLE, "node2": "IDLE+DRAIN"}, {"node2": "fan"})
    found = sleepers(slurm).begin(wake=True, deadline=0, check_mode=False)
    done = sleepers(slurm).done(check_mode=False)

    assert (found.changed, done.changed, slurm.resumed) == (False, False, [])
