"""What switches the machines of a lab: simulated devices on loopback that start and end QEMU or a container.

Machines of a lab reach this computer's loopback at HOST, by their uplink.
"""

from __future__ import annotations

import contextlib
import pathlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

from slurmstead.lab import machines
from slurmstead.lab.qmp import Qemu
from tests import power_devices as devices
from tests.power_devices import Device, Handler

HOST = "10.0.2.2"
MAGIC = b"\xff" * 6

CONTROL = """#!/usr/bin/env python3
# Called as: PROGRAM get NAME … or PROGRAM set NAME VALUE …
import sys, urllib.request

def ask(path):
    return urllib.request.urlopen("http://{address}/" + path).read().decode()

verb, *words = sys.argv[1:]
if verb == "get":
    for name in words:
        print(f"{name}:{ask('power') if name == 'power' else 0}")
else:
    for name, value in zip(words[::2], words[1::2]):
        if name in ("power", "shutdown"):
            ask(f"{name}/{value}")
"""
"""What ipmi_sim runs to switch its machine; it asks a Chassis."""


class Supply(Device):
    """A device whose machine is one of the lab. `board`: it says what was set last, as bmcd does."""

    def __init__(self, lab: Any, name: str, *, board: bool = False) -> None:
        self.lab, self.name, self.board, self.bit = lab, name, board, True
        self.booting: threading.Thread | None = None
        super().__init__()
        self.bit = True

    @property
    def runs(self) -> bool:
        """Whether the machine has a process, or is about to get one."""
        booting = self.booting is not None and self.booting.is_alive()
        return booting or machines.pids(self.lab.directory)[self.name] is not None

    @property
    def on(self) -> bool:
        """What the device says."""
        return self.bit if self.board else self.runs

    @on.setter
    def on(self, value: bool) -> None:
        self.bit = value

    def switch(self, on: bool, word: str) -> None:
        """Obey a request."""
        super().switch(on, word)
        if word == "GracefulShutdown":
            self.press()
        elif not on:
            machines.end(self.lab.directory, [self.name])
        elif not self.runs:
            self.booting = threading.Thread(target=self.lab.boot, args=(self.name,), daemon=True)
            self.booting.start()

    def press(self) -> None:
        """Press the button of a machine that runs: its system shuts down."""
        if self.lab.of_containers:
            # As logind does. One that shuts down already takes no login, and a BMC does not notice.
            with contextlib.suppress(RuntimeError):
                self.lab.host(self.name).run("sudo systemctl poweroff")
            return
        with contextlib.closing(Qemu(self.lab.directory / self.name)) as qemu:
            qemu.execute("system_powerdown")


class Chassis(Handler):
    """The machine behind ipmi_sim."""

    device: Supply

    def respond(self, body: Any) -> None:
        """Answer 1 or 0 for its power, and obey `power/1`, `power/0` and `shutdown/1`."""
        match self.path.strip("/").split("/"):
            case ["power"]:
                self.say(int(self.device.on))
            case ["power", value]:
                self.device.switch(value == "1", value)
                self.say("")
            case _:
                self.device.switch(False, "GracefulShutdown")
                self.say("")


@contextlib.contextmanager
def ipmi(supply: Supply, directory: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Give a machine a BMC with IPMI; yields its variables, as all functions here do."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with devices.served(Chassis, device=supply) as chassis:
        program = CONTROL.replace("{address}", chassis.address)
        with devices.ipmi_simulator(directory, port, program):
            yield {"power_method": "ipmi", "power_cipher": 3, **_credentials(f"{HOST}:{port}")}


@contextlib.contextmanager
def redfish(supply: Supply, directory: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Give a machine a BMC with Redfish and a certificate of its own."""
    with devices.served(devices.RedfishHandler, devices.certificate(directory), supply) as bmc:
        own = {"power_method": "redfish", "power_certificate": bmc.certificate}
        yield {**own, **_credentials(bmc.address.replace("127.0.0.1", HOST))}


@contextlib.contextmanager
def turing_pi(supply: Supply, directory: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Put a machine into slot 2 of a board."""
    supply.board = True
    with devices.served(devices.BmcdHandler, devices.certificate(directory), supply) as board:
        own = {"power_method": "turing_pi", "power_slot": 2}
        yield {**own, **_credentials(board.address.replace("127.0.0.1", HOST))}


@contextlib.contextmanager
def wake_on_lan(supply: Supply, _directory: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Give a machine a network card that listens while it is off."""
    mac = f"52:54:00:00:00:{supply.lab.variables[supply.name]['lab_number']:02x}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        listener = threading.Thread(target=_listen, args=(card, mac, supply), daemon=True)
        listener.start()
        yield {"power_method": "wake_on_lan", "power_mac": mac, "power_broadcast": f"{HOST}:{card.getsockname()[1]}"}
        card.sendto(b"", card.getsockname())
        listener.join(10)


def _listen(card: socket.socket, mac: str, supply: Supply) -> None:
    """Wake the machine at each magic packet, until a packet is empty."""
    wanted = MAGIC + bytes.fromhex(mac.replace(":", "")) * 16
    while heard := card.recv(200):
        if heard == wanted:
            supply.switch(True, "magic packet")


def _credentials(address: str) -> dict[str, Any]:
    return {"power_address": address, "power_user": "admin", "power_password": "right"}
