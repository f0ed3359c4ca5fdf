"""A node that is drained while it sleeps stays drained, with its reason, whatever slurmctld forgets."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import expand
from ansible.module_utils.slurmstead.slurm.jobs import State
from ansible.module_utils.slurmstead.workers import drains
from ansible.module_utils.slurmstead.workers import service as worker_service
from ansible.module_utils.slurmstead.workers.drains import Remembering
from ansible.module_utils.slurmstead.workers.service import Service

ASLEEP, OURS = "IDLE+POWERED_DOWN", "stead shutdown"


@pytest.fixture(autouse=True)
def short(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "FILE", tmp_path / "state" / "drains.json")
    monkeypatch.setattr(worker_service, "SURE", 0.0)


class Controller(Slurm):
    """A slurmctld that does what it is told, and forgets what the real ones forget."""

    def __init__(self, **states: str) -> None:
        self.shown = {name: {"State": state, "Reason": "", "ReasonSetByUser": ""} for name, state in states.items()}

    def state(self) -> State:
        return State(())

    def nodes(self) -> dict[str, dict[str, str]]:
        return {name: dict(fields) for name, fields in self.shown.items()}

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        for name in expand(nodes):
            kept = self.shown[name]["State"].replace("+DRAIN", "").replace("DOWN+", "IDLE+")
            drain = {"State": f"{self.shown[name]['State'].replace('+DRAIN', '')}+DRAIN", "Reason": reason}
            self.shown[name] |= drain if state == "DRAIN" else {"State": kept, "Reason": ""}
            self.shown[name]["ReasonSetByUser"] = "root" if reason else ""

    def resume(self, seen: Mapping[str, Mapping[str, str]]) -> list[str]:
        for name in seen:
            Controller.update(self, name, "RESUME")
        return []

    def tell(self, name: str, *words: str) -> None:
        """Do what the watch says."""
        for word in words:
            key, _, value = word.partition("=")
            if key == "state":
                Controller.update(self, name, value.upper(), self.shown[name]["Reason"])
            else:
                self.shown[name] |= {"Reason": value, "ReasonSetByUser": "root"}

    def register(self, name: str) -> None:
        drain = "+DRAIN" if "DRAIN" in self.shown[name]["State"] else ""
        self.shown[name] = {"State": f"IDLE{drain}", "Reason": "", "ReasonSetByUser": ""}

    def give_up(self, name: str, release: str) -> None:
        before = self.shown[name]["Reason"]
        reason = f"{before} : ResumeTimeout reached" if before and release == "24.11" else "ResumeTimeout reached"
        self.shown[name] = {"State": "DOWN+POWERED_DOWN", "Reason": reason, "ReasonSetByUser": "slurm"}


class Remembered(Remembering, Controller):
    """The same, as the modules use it."""


def look(slurm: Controller) -> dict[str, tuple[str, ...]]:
    """Do what the watch does at each look; return what it told slurmctld."""
    with drains.record() as reasons:
        told = drains.forgotten(reasons, Controller.nodes(slurm))
    for name, words in told.items():
        slurm.tell(name, *words)
    return told


def drained(reason: str = "fan") -> Remembered:
    """Return a controller with one node that a person drained while it slept, and the watch saw that."""
    slurm = Remembered(n1=ASLEEP)
    Controller.update(slurm, "n1", "DRAIN", reason)
    assert look(slurm) == {}
    return slurm


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_a_node_that_does_not_wake_is_drained_again_with_its_reason(release: str) -> None:
    slurm = drained()
    slurm.give_up("n1", release)
    look(slurm)

    assert (slurm.shown["n1"]["State"], slurm.shown["n1"]["Reason"]) == ("DOWN+POWERED_DOWN+DRAIN", "fan")
    assert look(slurm) == {}


def test_a_node_that_registers_keeps_its_reason_and_is_not_drained_again() -> None:
    slurm = drained()
    slurm.register("n1")
    unseen = slurm.nodes()["n1"]["Reason"]

    assert look(slurm) == {"n1": ("reason=fan",)}
    assert (unseen, slurm.shown["n1"]["Reason"]) == ("fan", "fan")
    # It is on: from now on Slurm remembers it.
    assert look(slurm) == {}
    slurm.shown["n1"]["Reason"] = ""
    assert look(slurm) == {}


def test_what_a_person_resumed_is_not_drained_again() -> None:
    slurm = drained()
    Controller.update(slurm, "n1", "RESUME")
    look(slurm)
    slurm.give_up("n1", "22.05")

    assert look(slurm) == {}
    assert "DRAIN" not in slurm.shown["n1"]["State"]


def test_a_persons_reason_replaces_ours() -> None:
    slurm = Remembered(n1=ASLEEP)
    slurm.update("n1", "DRAIN", OURS)
    Controller.update(slurm, "n1", "DRAIN", "bad DIMM")
    look(slurm)
    slurm.register("n1")
    done = Service(["n1"], OURS, slurm).bring_back(0, check_mode=False)

    assert done.said == ("n1 stays drained: bad DIMM",)
    assert slurm.shown["n1"]["State"] == "IDLE+DRAIN"


@pytest.mark.parametrize("state", [ASLEEP, "DOWN+POWERED_DOWN"])
@pytest.mark.parametrize("watched", [True, False])
def test_a_command_finds_the_sleepers_that_it_drained_after_they_were_switched_on(state: str, watched: bool) -> None:
    """Control may be off before its watch sees the drain, and none looks where nothing may sleep any more."""
    slurm = Remembered(n1=state, n2="IDLE")
    Service(["n1", "n2"], OURS, slurm).take_out("refuse", 0, check_mode=False)
    slurm.register("n1")
    if watched:
        look(slurm)
    done = Service(["n1", "n2"], OURS, slurm).bring_back(0, check_mode=False)

    assert done.said == ("n[1-2] in service",)
    assert slurm.shown["n1"]["State"] == "IDLE"
    # A later drain, whose reason is unknown, is not ours.
    slurm.shown["n1"] |= {"State": "IDLE+DRAIN", "Reason": ""}
    assert not Service(["n1"], OURS, slurm).bring_back(0, check_mode=False).changed


def test_a_broken_record_stops_nothing() -> None:
    drains.FILE.parent.mkdir()
    drains.FILE.write_text("{")
    slurm = drained()

    assert slurm.nodes()["n1"]["Reason"] == "fan"
