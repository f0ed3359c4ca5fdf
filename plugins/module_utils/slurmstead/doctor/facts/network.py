# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The packet size of this machine's networks, and whether it reaches another machine."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping, Sequence

from ansible.module_utils.slurmstead.reach.commands import run

SECONDS = 4.0
"""Timeout for a connection, on a network where an answer takes milliseconds."""


def mtus() -> dict[str, int]:
    """Return the MTU in bytes of the link of each address that other machines can reach."""
    _, out, _ = run("ip", "--json", "address")
    return {
        entry["local"]: link["mtu"]
        for link in json.loads(out or "[]")
        for entry in link.get("addr_info", [])
        if entry.get("scope") == "global" and "mtu" in link
    }


def unreached(peers: Mapping[str, Sequence[int]]) -> dict[str, dict[str, str]]:
    """Return why TCP ports of other machines cannot be reached, by machine and port.

    A port on which nothing listens is reached: the other machine itself refuses the connection. A firewall that drops
    the packet, or answers that the host cannot be reached, is seen; one that refuses the connection is not.

    :param peers: ports by name of machine
    """
    found = {
        name: {str(port): why for port in ports if (why := _unreached(name, port))} for name, ports in peers.items()
    }
    return {name: ports for name, ports in found.items() if ports}


def _unreached(name: str, port: int) -> str:
    try:
        with contextlib.closing(socket.create_connection((name, port), SECONDS)):
            return ""
    except ConnectionRefusedError:
        return ""
    except OSError as error:
        return "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
