"""How far a reboot is, and who drained the node, by what slurmctld says of it."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.slurm.answers import read_nodes
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.workers.reboot import (
    Before,
    Phase,
    Reboot,
    RebootError,
    noted,
    phase,
    seconds,
)

OLD, NEW = "2026-11-21T02:27:02", "2026-11-21T14:50:41"
BEFORE = Before(seconds(OLD))

# As Slurm 22.05.8 and 24.11.5 print it, shortened.
LINE = "NodeName=n1 Arch=x86_64 State={state} ThreadsPerCore=1 NextState=RESUME BootTime={boot} CfgTRES=cpu=2 {reason}"


def node(state: str, boot: str = OLD, reason: str = "") -> dict[str, str]:
    """Return the fields of a node."""
    said = f"Reason={reason} [root@2026-11-21T14:50:33]" if reason else ""
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


class Waits(Slurm):
    """A slurmctld with a node that waits for its jobs."""

    def nodes(self) -> dict[str, dict[str, str]]:
        return {"n1": node("MIXED+DRAIN+REBOOT_REQUESTED", reason="stead reboot")}

    def cancel_reboot(self, node: str) -> None:
        raise AssertionError(f"the reboot of {node} was withdrawn")


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
