# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Wake-on-LAN: a magic packet switches a machine on. Nothing but its ssh can switch it off."""

from __future__ import annotations

import contextlib
import socket

from ansible.module_utils.slurmstead.power import address
from ansible.module_utils.slurmstead.power.model import Machine, PowerError

PORT = 9

EVERYWHERE = "255.255.255.255"
"""The broadcast address that leaves by the network of the sender's address, or by the default route."""


def packet(mac: str) -> bytes:
    """Return the magic packet for a network card.

    >>> packet("52:54:00:00:00:01")[4:12].hex()
    'ffff525400000001'
    """
    return b"\xff" * 6 + bytes.fromhex(mac.replace(":", "").replace("-", "")) * 16


def own_address(host: str) -> str:
    """Return the address of this machine in the network of a host; empty if that cannot be told."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        if host:
            link.connect((host, PORT))
            return str(link.getsockname()[0])
    return ""


class WakeOnLan:
    """A machine whose card listens while the rest of it is off (`ethtool -s eth0 wol g`)."""

    orderly = False

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def on(self, stale: bool = False) -> None:
        """Send the packet three times: UDP can lose one, and a machine that is on ignores it."""
        target = address.split(self.machine.broadcast, PORT)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                if target[0] == EVERYWHERE:
                    # The default route of a router leads outside.
                    sender.bind((own_address(self.machine.host), 0))
                for _ in range(3):
                    sender.sendto(packet(self.machine.mac), target)
        except OSError as error:
            raise PowerError(f"no packet can be sent to {self.machine.broadcast}: {error}") from None

    def off(self) -> None:
        """Not possible."""
        raise PowerError(f"Wake-on-LAN cannot cut the supply of {self.machine.name}")

    def shut_down(self) -> None:
        """Not possible."""
        raise PowerError("Wake-on-LAN cannot shut down a system; ssh can")

    def is_on(self) -> bool | None:
        """Unknown: only the network can tell."""
        return None
