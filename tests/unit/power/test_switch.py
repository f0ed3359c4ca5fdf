"""Switching a machine, by devices that work, lie, break and refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.power import switch as power_switch
from ansible.module_utils.slurmstead.power.model import Machine
from ansible.module_utils.slurmstead.power.switch import Done, switch
from tests import power_devices as devices
from tests.power_devices import Device


@pytest.fixture
def device() -> Iterator[Device]:
    with devices.served(devices.ShellyHandler) as found:
        yield found


def machine(device: Device, password: str = "right") -> Machine:
    return Machine("node1", "plug", address=device.address, user="admin", password=password, plug="shelly_1")


def test_a_machine_goes_on_and_off_and_a_second_time_changes_nothing(device: Device) -> None:
    done = [switch(machine(device), state) for state in ("status", "on", "on", "off", "off")]

    assert [(one.power, one.changed) for one in done] == [
        ("off", False),
        ("on", True),
        ("on", False),
        ("off", True),
        ("off", False),
    ]
    assert device.switched == ["on", "off"]


def test_a_device_that_lies_is_a_problem(device: Device) -> None:
    device.lies = True

    done = switch(machine(device), "on", settle=0.1)
    assert (done.power, done.problem) == ("off", "its device accepted `on` and still reports off after 0 s")


def test_a_wrong_password_is_sent_once(device: Device) -> None:
    done = switch(machine(device, "wrong"), "on")

    assert (done.power, device.refused, device.switched) == ("error", 1, [])
    assert done.problem == f"{device.address} refuses the credentials of node1 (HTTP 401)"


def test_a_wrong_password_is_sent_once_for_all_machines_of_a_device(device: Device) -> None:
    machines = [dataclasses.replace(machine(device, "wrong"), name=f"node{slot}", slot=slot) for slot in (1, 2, 3)]
    other = dataclasses.replace(machine(device), name="node4", slot=4)
    done = power_switch.together([*machines, other], lambda one: switch(one, "status"))

    assert [(one.name, one.power) for one in done] == [
        *((f"node{slot}", "error") for slot in (1, 2, 3)),
        ("node4", "off"),
    ]
    assert (device.refused, device.logins) == (1, 2)
    assert done[2].problem == f"{device.address} has refused these credentials for node1"


def test_a_broken_device_is_a_problem(device: Device) -> None:
    device.broken = 500

    assert switch(machine(device), "status") == Done(
        "node1", "error", problem=f"{device.address} answers HTTP 500 to /relay/0"
    )


@pytest.mark.parametrize(("answers", "switched"), [([True], []), ([True, False], ["off"]), ([False], ["off"])])
def test_only_a_system_that_has_shut_down_loses_its_supply(
    device: Device, monkeypatch: pytest.MonkeyPatch, answers: list[bool], switched: list[str]
) -> None:
    """The operator's computer may not have reached the machine, and taken it for off."""
    for name, value in (("SILENCE", 0.1), ("QUIET", 0.1), ("PAUSE", 0.02)):
        monkeypatch.setattr(power_switch, name, value)
    monkeypatch.setattr(power_switch.shutdown, "answers", lambda _: answers.pop(0) if answers[1:] else answers[0])
    device.on = True
    done = power_switch.cut(dataclasses.replace(machine(device), host="10.0.0.3"))

    assert device.switched == switched
    assert done.problem == ("" if switched else "its system still answers at 10.0.0.3, so its supply was not cut")


def test_wake_on_lan_cuts_nothing() -> None:
    wakes = Machine("node1", "wake_on_lan", mac="52:54:00:00:00:01", broadcast="127.0.0.1:9")

    assert switch(wakes, "off") == Done("node1", "unknown")
    assert switch(wakes, "on") == Done("node1", "unknown", changed=True)
