"""How far a reboot is, and who drained the node, by what slurmctld says of it."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.slurm.answers import read_nodes
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.jobs import State
from ansible.module_utils.slurmstead.workers.reboot import (
    Before,
    Phase,
    Reboot,
    RebootError,
    found,
    noted,
    phase,
    seconds,
)

OLD, NEW = "2026-11-21T02:27:02", "2026-11-21T14:50:41"
BEFORE = Before(seconds(OLD))

# As Slurm 22.05.8 and 24.11.5 print it, shortened.
LINE = "NodeName=n1 Arch=x86_64 State={state} ThreadsPerCore=1 NextState=RESUME BootTime={boot} CfgTRES=cpu=2 {reason}"


LOW = "Low RealMemory (reported:1388 < 100.00% of configured:1900)"
GRES = "gres/core count reported lower than configured (0 < 4)"


def node(state: str, boot: str = OLD, reason: str = "", author: str = "root") -> dict[str, str]:
    """Return the fields of a node."""
    said = f"Reason={reason} [{author}@2026-11-21T14:50:33]" if reason else ""
    return read_nodes(LINE.format(state=state, boot=boot, reason=said))["n1"]


@pytest.mark.parametrize(
    ("state", "boot", "expected"),
    [
        ("MIXED+DRAIN+REBOOT_REQUESTED", OLD, Phase.WAITS),
        ("IDLE+DRAIN+REBOOT_REQUESTED", OLD, Phase.WAITS),
        ("DOWN+DRAIN+REBOOT_ISSUED", OLD, Phase.REBOOTS),
        ("IDLE", NEW, Phase.BACK),
        ("ALLOCATED", NEW, Phase.BACK),
        ("IDLE*", NEW, Phase.UNFIT),
        ("IDLE+DRAIN+INVALID_REG", NEW, Phase.UNFIT),
        ("DOWN+DRAIN", OLD, Phase.DOWN),
        ("DOWN+NOT_RESPONDING", OLD, Phase.DOWN),
        ("MIXED", OLD, Phase.WITHDRAWN),
        ("IDLE", "2026-11-21T02:27:03", Phase.WITHDRAWN),
        # Without a battery for its clock a board may say that it booted years ago.
        ("IDLE", "1970-01-01T00:00:12", Phase.BACK),
    ],
)
def test_the_state_and_the_time_of_boot_say_how_far_a_reboot_is(state: str, boot: str, expected: Phase) -> None:
    assert phase(BEFORE, node(state, boot)) is expected


def test_a_node_that_somebody_drained_is_back_although_it_is_drained() -> None:
    assert phase(Before(BEFORE.boot, "fan"), node("IDLE+DRAIN", NEW, "fan")) is Phase.BACK


@pytest.mark.parametrize(
    ("before", "state", "reason", "expected"),
    [
        (None, "MIXED+DRAIN+REBOOT_REQUESTED", "fan", "fan"),
        ("fan", "MIXED+DRAIN+REBOOT_REQUESTED", "stead reboot", None),
        (None, "DOWN+DRAIN+REBOOT_ISSUED", "fan", "fan"),
        (None, "DOWN+DRAIN+REBOOT_ISSUED", "stead reboot : reboot issued", None),
        ("fan", "DOWN+DRAIN+REBOOT_ISSUED", "fan : reboot issued", "fan"),
        ("fan", "DOWN+REBOOT_ISSUED", "reboot issued", "fan"),
        ("fan", "IDLE", "", "fan"),
    ],
)
def test_a_drain_of_an_administrator_during_the_reboot_is_restored_afterwards(
    before: str | None, state: str, reason: str, expected: str | None
) -> None:
    boot = NEW if state == "IDLE" else OLD
    assert noted(Before(BEFORE.boot, before), node(state, boot, reason)).drained == expected


def test_who_drained_is_known_although_slurmctld_signs_the_reason_when_it_issues_the_reboot() -> None:
    waits = node("MIXED+DRAIN+REBOOT_REQUESTED", reason=LOW, author="slurm")
    issued = node("DOWN+DRAIN+REBOOT_ISSUED", reason=f"{LOW} : reboot issued", author="slurm")
    lost = node("DOWN+DRAIN+REBOOT_ISSUED", reason="reboot issued", author="slurm")

    before = noted(BEFORE, waits)

    assert before == Before(BEFORE.boot, LOW, "slurm")
    assert [noted(before, issued), noted(before, lost)] == [before, before]
    # An administrator may have used the same words.
    assert noted(BEFORE, issued) == Before(BEFORE.boot, LOW, "")


class Back(Slurm):
    """A slurmctld whose node is back with a reason that slurmctld itself has signed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.told: list[str] = []

    def nodes(self) -> dict[str, dict[str, str]]:
        return {"n1": node("IDLE+DRAIN", NEW, self.reason, "slurm")}

    def update(self, nodes: str, state: str, reason: str = "") -> None:
        assert (nodes, state) == ("n1", "DRAIN")
        self.told.append(reason)


@pytest.mark.parametrize(
    ("reason", "author", "shown", "told"),
    [
        ("fan", "ann", "fan : reboot issued", ["fan"]),
        (LOW, "root", f"{LOW} : reboot issued", [LOW]),
        (LOW, "", f"{LOW} : reboot issued", [LOW]),
        # The health check or `up` takes these back.
        (LOW, "slurm", f"{LOW} : reboot issued", []),
        ("Kill task failed", "root", "Kill task failed : reboot issued", []),
        ("slurmstead: disk / is full", "root", "slurmstead: disk / is full : reboot issued", []),
        (GRES, "slurm", f"{GRES} : reboot issued", []),
        # 22.05, at the second reboot.
        (LOW, "slurm", "reboot issued", [f"slurmstead: {LOW}"]),
        ("Kill task failed", "slurm", "reboot issued", ["Kill task failed"]),
        ("slurmstead: disk / is full", "root", "reboot issued", ["slurmstead: disk / is full"]),
    ],
)
def test_only_an_administrators_drain_is_set_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, reason: str, author: str, shown: str, told: list[str]
) -> None:
    monkeypatch.setattr(cluster_lock, "PATH", tmp_path / "lock")
    slurm = Back(shown)

    said = Reboot("n1", slurm).wait(Before(BEFORE.boot, reason, author), 60)

    assert said == f"n1 is back after 0 s, drained as before: {reason}"
    assert slurm.told == told


class Drained(Back):
    """A slurmctld with a drained node that waits for its jobs; a withdrawn reboot resumes it (_undo_reboot_asap)."""

    def __init__(self, reason: str, author: str) -> None:
        super().__init__(reason)
        self.author = author

    def nodes(self) -> dict[str, dict[str, str]]:
        return {"n1": node("MIXED+DRAIN+REBOOT_REQUESTED", reason=self.reason, author=self.author)}

    def state(self) -> State:
        return State(())

    def cancel_reboot(self, node: str) -> None:
        self.told.append("cancel_reboot")


class Waits(Slurm):
    """A slurmctld with a node that waits for its jobs."""

    reason = "stead reboot"

    def nodes(self) -> dict[str, dict[str, str]]:
        return {"n1": node("MIXED+DRAIN+REBOOT_REQUESTED", reason=self.reason)}

    def state(self) -> State:
        return State(())

    def cancel_reboot(self, node: str) -> None:
        raise AssertionError(f"the reboot of {node} was withdrawn")


@pytest.mark.parametrize(
    ("reason", "author", "told"),
    [
        ("fan", "ann", "fan"),
        (LOW, "root", LOW),
        (LOW, "slurm", f"slurmstead: {LOW}"),
        ("Kill task failed", "root", "Kill task failed"),
    ],
)
def test_a_reboot_that_is_withdrawn_leaves_the_drain_to_whom_it_belongs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, reason: str, author: str, told: str
) -> None:
    monkeypatch.setattr(cluster_lock, "PATH", tmp_path / "lock")
    slurm = Drained(reason, author)

    with pytest.raises(RebootError, match="was not rebooted and goes on as before"):
        Reboot("n1", slurm).wait(Before(BEFORE.boot, reason, author), -1)
    assert slurm.told == ["cancel_reboot", told]


@pytest.mark.parametrize(
    ("state", "reason", "drained", "requested"),
    [
        ("IDLE+DRAIN", "fan", "fan", ""),
        ("MIXED+DRAIN+REBOOT_REQUESTED NextState=RESUME", "stead reboot", None, ""),
        ("MIXED+DRAIN+REBOOT_REQUESTED", "fan", "fan", ""),
        ("DOWN+DRAIN+REBOOT_ISSUED", "fan : reboot issued", "fan", ""),
        # scontrol reboot ASAP, without and with a reason, and scontrol reboot
        ("MIXED+DRAIN+REBOOT_REQUESTED NextState=RESUME", "Reboot ASAP", None, "Reboot ASAP"),
        ("DOWN+DRAIN+REBOOT_ISSUED NextState=RESUME", "kernel : reboot issued", None, "kernel"),
        ("MIXED+REBOOT_REQUESTED", "reboot requested", None, "reboot requested"),
    ],
)
def test_a_reboot_that_an_administrator_requested_is_not_a_drain(
    state: str, reason: str, drained: str | None, requested: str
) -> None:
    shown = node(state, reason=reason)
    if "NextState" not in state:
        del shown["NextState"]

    before = found(shown)

    assert (before.drained, before.requested) == (drained, requested)
    assert (noted(before, shown).drained, noted(before, shown).requested) == (drained, requested)


def test_a_drain_during_a_reboot_that_an_administrator_requested_is_restored() -> None:
    before = found(node("MIXED+DRAIN+REBOOT_REQUESTED", reason="Reboot ASAP"))

    assert noted(before, node("MIXED+DRAIN+REBOOT_REQUESTED", reason="fan")).drained == "fan"


def test_a_reboot_that_an_administrator_requested_is_not_withdrawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(cluster_lock, "PATH", tmp_path / "lock")
    slurm = Waits()
    slurm.reason = "Reboot ASAP"

    with pytest.raises(RebootError, match="An administrator has requested the reboot"):
        Reboot("n1", slurm).wait(found(slurm.nodes()["n1"]), -1)


def test_what_a_killed_run_left_behind_withdraws_no_reboot_for_which_another_run_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    lock = tmp_path / "lock"
    lock.write_text("ann since noon")
    monkeypatch.setattr(cluster_lock, "PATH", lock)
    reboot = Reboot("n1", Waits())
    lock.write_text("bob since one")

    with pytest.raises(RebootError, match="bob since one has taken over the cluster lock"):
        reboot.wait(BEFORE, -1)
