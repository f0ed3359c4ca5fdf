"""Each method of switching a machine against a device that speaks its real protocol."""

from __future__ import annotations

import pathlib
import socket
import stat
import time
from collections.abc import Callable, Iterator

import pytest

from ansible.module_utils.slurmstead.power import ipmi, model, plug, wake_on_lan
from ansible.module_utils.slurmstead.power.methods import METHODS, method
from ansible.module_utils.slurmstead.power.model import Machine, PowerError, RefusedError
from tests import power_devices as devices
from tests.power_devices import Device

Make = Callable[..., Machine]

KINDS = {
    "redfish": (devices.RedfishHandler, {"method": "redfish"}, True),
    "turing_pi": (devices.BmcdHandler, {"method": "turing_pi", "slot": 2}, True),
    "tasmota": (devices.TasmotaHandler, {"method": "plug", "plug": "tasmota"}, False),
    "shelly_1": (devices.ShellyHandler, {"method": "plug", "plug": "shelly_1"}, False),
    "shelly_2": (devices.Shelly2Handler, {"method": "plug", "plug": "shelly_2"}, False),
}


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, str]:
    return devices.certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, tls: tuple[pathlib.Path, str]) -> Iterator[tuple[Device, Make]]:
    """A device, and what makes a machine that it switches."""
    handler, own, secure = KINDS[request.param]
    with devices.served(handler, tls if secure else None) as device:
        given = {"name": "node1", "user": "admin", "password": "right", "address": device.address, "seconds": 5.0}
        yield device, lambda **more: Machine.read({**given, **own, **more})


def test_a_machine_is_switched_on_and_off(pair: tuple[Device, Make]) -> None:
    device, make = pair
    power = method(make())
    seen = [power.is_on()]
    power.on()
    seen.append(power.is_on())
    power.off()
    seen.append(power.is_on())

    assert (seen, device.on) == ([False, True, False], False)


def test_switching_on_what_is_on_does_not_cut_it(pair: tuple[Device, Make]) -> None:
    device, make = pair
    device.on = True
    method(make()).on()

    assert device.on and not {"0", "off", "Off", "false", "ForceOff"} & set(device.switched)


def test_a_refused_password_is_sent_once(pair: tuple[Device, Make]) -> None:
    device, make = pair
    with pytest.raises(RefusedError) as error:
        method(make(password="wrong-secret")).on()

    assert device.refused == 1 and device.switched == []
    assert "wrong-secret" not in str(error.value)


@pytest.mark.parametrize("status", [404, 500, 503])
def test_a_broken_device_is_an_error_that_names_it(pair: tuple[Device, Make], status: int) -> None:
    device, make = pair
    device.broken = status
    with pytest.raises(PowerError, match=f"{device.address} answers HTTP {status}"):
        method(make()).is_on()


@pytest.mark.parametrize("said", [[], "ok", 7, [{"PowerState": "On"}], {"Members": ["1"]}, {"Members": {"1": {}}}])
def test_a_device_that_answers_something_else_is_an_error(
    pair: tuple[Device, Make], monkeypatch: pytest.MonkeyPatch, said: object
) -> None:
    """Another program may answer at the address."""
    device, make = pair
    monkeypatch.setattr(devices.Handler, "answer", lambda self, _: self.say(said))
    with pytest.raises(PowerError, match=device.address):
        method(make()).is_on()


def test_a_device_that_is_off_is_an_error(pair: tuple[Device, Make]) -> None:
    _, make = pair
    with pytest.raises(PowerError, match="127.0.0.1:1 does not answer"):
        method(make(address="127.0.0.1:1")).is_on()


def test_a_device_that_lies_is_seen(pair: tuple[Device, Make]) -> None:
    device, make = pair
    if isinstance(method(make()), METHODS["turing_pi"]):  # type: ignore[arg-type]
        device.on = True
    device.lies = True
    power = method(make())
    power.on(stale=device.on)

    assert power.is_on() is device.on


@pytest.mark.parametrize("kind", ["redfish", "turing_pi"])
def test_another_certificate_gets_no_password(kind: str, tls: tuple[pathlib.Path, str]) -> None:
    handler, own, _ = KINDS[kind]
    with devices.served(handler, tls) as device:
        given = {"name": "node1", "password": "right", "user": "admin", "address": device.address, **own}
        assert method(Machine.read({**given, "certificate": device.certificate})).is_on() is False
        device.logins = 0
        with pytest.raises(PowerError, match="has another certificate than power_certificate says"):
            method(Machine.read({**given, "certificate": "00" * 32})).is_on()

        assert device.logins == 0


@pytest.mark.parametrize(("kind", "edge"), [("turing_pi", ["0", "1"]), ("shelly_1", ["off", "on"])])
def test_a_machine_that_shut_itself_down_gets_an_edge(
    kind: str, edge: list[str], tls: tuple[pathlib.Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    handler, own, secure = KINDS[kind]
    with devices.served(handler, tls if secure else None) as device:
        device.on = True
        given = {"name": "node1", "password": "right", "user": "admin", "address": device.address, **own}
        method(Machine.read(given)).on(stale=True)

        assert device.switched == edge
        assert waited == ([plug.DISCHARGE] if kind == "shelly_1" else [])


def test_redfish_shuts_down_by_the_power_button(tls: tuple[pathlib.Path, str]) -> None:
    with devices.served(devices.RedfishHandler, tls) as device:
        device.on = True
        method(Machine("node1", "redfish", address=device.address, user="admin", password="right")).shut_down()

        assert device.switched == ["GracefulShutdown"]


def test_a_magic_packet_wakes() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.settimeout(5)
        machine = Machine("n", "wake_on_lan", mac="52:54:00:AB:cd:01", broadcast=f"127.0.0.1:{card.getsockname()[1]}")
        method(machine).on()
        heard = card.recv(200)

    assert heard == b"\xff" * 6 + b"\x52\x54\x00\xab\xcd\x01" * 16
    assert method(machine).is_on() is None
    assert len(wake_on_lan.packet(machine.mac)) == 102


def test_a_command_gets_the_password_in_its_environment(tmp_path: pathlib.Path) -> None:
    program, state = tmp_path / "switch", tmp_path / "state"
    program.write_text(
        f'#!/bin/sh\necho "$@ $POWER_NODE $POWER_PASSWORD" >> {tmp_path}/log\n'
        f"case $1 in status) test -e {state};; on) touch {state};; off) rm {state};; esac\n"
    )
    program.chmod(stat.S_IRWXU)
    commands = {verb: [str(program), verb] for verb in ("on", "off", "status")}
    power = method(Machine("node7", "command", password="secret", commands=commands))
    seen = [power.is_on()]
    power.on()
    seen.append(power.is_on())
    power.off()

    assert [*seen, power.is_on()] == [False, True, False]
    assert "on node7 secret" in (tmp_path / "log").read_text()
    with pytest.raises(PowerError, match="the command `off` of node7 exits with 1"):
        power.off()


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        (
            "Set Session Privilege Level to ADMINISTRATOR failed\nError: Unable to establish IPMI v2 / RMCP+ session",
            False,
        ),
        ("Set Session Privilege Level to ADMINISTRATOR failed: Insufficient privilege level", True),
        ("RAKP 2 message indicates an error : unauthorized name", True),
    ],
)
def test_a_lost_answer_of_ipmi_is_no_refusal(said: str, refused: bool) -> None:
    """The messages of src/plugins/lanplus/lanplus.c."""
    assert bool(ipmi.REFUSED.search(said)) is refused


@pytest.mark.slow
def test_ipmi_against_the_simulator_of_openipmi(tmp_path: pathlib.Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with devices.ipmi_simulator(tmp_path, port) as state:
        power = method(Machine("node1", "ipmi", address=f"127.0.0.1:{port}", user="admin", password="right", cipher=3))
        until = time.monotonic() + 20
        while True:
            try:
                seen = [power.is_on()]
                break
            except model.PowerError:
                assert time.monotonic() < until, (tmp_path / "log").read_text()
        power.on()
        seen += [power.is_on(), state.read_text().strip() == "1"]
        power.off()
        seen += [power.is_on(), state.read_text().strip() == "1"]
        power.on()
        power.shut_down()
        seen.append(power.is_on())
        with pytest.raises(RefusedError):
            method(
                Machine("node1", "ipmi", address=f"127.0.0.1:{port}", user="admin", password="wrong", cipher=3)
            ).is_on()

    assert seen == [False, True, True, False, False, False]
