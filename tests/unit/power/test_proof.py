"""A method is proved on one machine; a device of another machine is found before harm, or as soon as possible."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from ansible.module_utils.slurmstead.power import proof
from ansible.module_utils.slurmstead.power.model import Machine, PowerError
from ansible.module_utils.slurmstead.power.switch import switch
from tests import power_devices as devices

STARTS = ("2026-11-25T10:00:00", "2026-11-25T11:00:00", "2026-11-25T12:00:00")


@dataclasses.dataclass
class World:
    """Which machines answer, and what slurmctld shows of node1."""

    device: devices.Device
    machine: Machine
    halted: bool = False
    wired_to: str = "node1"
    """whose supply the device switches"""
    registers: bool = True

    def answers(self, machine: Machine) -> bool:
        if machine.name == self.wired_to:
            return self.device.on and not (self.halted and machine.name == "node1" and "On" not in self.device.switched)
        return not (machine.name == "node1" and self.halted)

    def nodes(self) -> dict[str, dict[str, str]]:
        boots = self.device.switched.count("On") if self.registers else 0
        return {"node1": {"State": "IDLE+DRAIN", "Reason": "x", "SlurmdStartTime": STARTS[boots]}}


@pytest.fixture
def world(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A worker with a BMC by Redfish, and another worker beside it."""
    with devices.served(devices.RedfishHandler, devices.certificate(tmp_path)) as device:
        device.on = True
        machine = Machine("node1", "redfish", host="node1", address=device.address, user="admin", password="right")
        found = World(device, machine)
        monkeypatch.setattr(proof.shutdown, "answers", found.answers)
        for name, value in (("QUIET", 0.1), ("NOTICE", 0.2), ("PAUSE", 0.02), ("SHUTDOWN", 0.2)):
            monkeypatch.setattr(proof, name, value)
        yield found


def test_a_machine_that_obeys_is_off_and_on_again_and_measured(world: World) -> None:
    started, supply = proof.check(world.machine, world.nodes)
    down = proof.down(world.machine)
    world.device.on = False  # Its system was shut down over ssh.
    off, taken = proof.up(world.machine, started, {"node2": "node2"}, world.nodes, 5)

    assert supply
    assert down is None
    assert world.device.switched == ["On", "GracefulShutdown", "On"]
    assert off is not None
    assert 0 <= taken < 5


@pytest.mark.parametrize("state", ["IDLE+POWERED_DOWN", "MIXED+POWERING_UP", "IDLE+POWERING_DOWN"])
def test_a_machine_that_sleeps_is_not_tested(world: World, state: str) -> None:
    with pytest.raises(PowerError, match="wake it first"):
        proof.check(world.machine, lambda: {"node1": {"State": state, "Reason": ""}})

    assert world.device.switched == []


def test_a_device_that_says_off_of_a_machine_that_answers_is_anothers(world: World) -> None:
    world.device.on = False
    world.wired_to = "node2"

    with pytest.raises(PowerError, match="device of another machine"):
        proof.check(world.machine, world.nodes)


def test_a_bmc_of_another_machine_switches_nothing(world: World) -> None:
    world.wired_to = "node2"
    assert proof.down(world.machine) is None
    world.halted = True

    with pytest.raises(PowerError, match="nothing was cut"):
        proof.up(world.machine, STARTS[0], {"node2": "node2"}, world.nodes, 5)

    assert world.device.switched == []


def test_another_machine_that_goes_silent_is_switched_on_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "MEASURES", ())
    world.wired_to, world.halted = "node2", True

    with pytest.raises(PowerError, match="node2 went silent"):
        proof.cut(world.machine, {"node2": "node2", "node3": "node3"})

    assert world.device.switched == ["ForceOff", "On"]
    assert world.device.on


def test_a_device_that_accepts_and_does_nothing_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "MEASURES", ())
    monkeypatch.setattr(proof, "switch", functools.partial(switch, settle=0.1))
    world.halted, world.device.lies = True, True

    with pytest.raises(PowerError, match="still reports on"):
        proof.cut(world.machine, {})


def test_a_system_that_ignores_its_button_is_not_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.device.on = False
    wake = proof.wake

    def lie_afterwards(*words: Any) -> float:
        taken = wake(*words)
        world.device.lies = True
        return taken

    monkeypatch.setattr(proof, "wake", lie_afterwards)
    with pytest.raises(PowerError, match="still answers"):
        proof.up(world.machine, STARTS[0], {}, world.nodes, 5)

    assert world.device.switched == ["On", "GracefulShutdown"]


def test_what_slurmctld_knew_before_does_not_count_as_registered(world: World) -> None:
    world.device.on, world.registers = False, False

    with pytest.raises(PowerError, match="has not registered yet"):
        proof.wake(world.machine, STARTS[0], world.nodes, 0.3)


def test_control_does_not_shut_down_by_ssh_what_does_not_know_its_key(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine that may sleep made the key, but this one does not have it."""
    (tmp_path / "power.json").write_text('{"sleepers": [{"machine": {"name": "node2", "method": "plug"}}]}')
    machine = Machine("node1", "wake_on_lan", mac="52:54:00:00:00:01")
    for path in ("power.json", "none"):
        monkeypatch.setattr(proof.watch, "CONFIGURATION", tmp_path / path)
        assert proof.down(machine) is None


def test_a_machine_that_was_replaced_has_another_host_key() -> None:
    settings = ["ssh", "-G", *proof.shutdown.SSH[1:], "root@node1"]
    found = subprocess.run(settings, capture_output=True, text=True, check=True).stdout.splitlines()

    assert {"stricthostkeychecking false", "userknownhostsfile /dev/null"} <= {*found}
