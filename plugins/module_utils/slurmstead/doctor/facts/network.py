# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The packet size of this machine's networks, and whether it reaches another machine."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping, Sequence

from ansible.module_utils.slurmstead.doctor.facts.in_time import answers
from ansible.module_utils.slurmstead.reach.commands import run

SECONDS = 4.0
"""Timeout for a connection, on a network where an answer takes milliseconds."""

LOOK = 8.0
"""Timeout in seconds for all connections, with the resolution of names, which has no timeout of its own."""


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
    asked = [(name, port) for name, ports in peers.items() for port in ports]
    seen = answers(_unreached, asked, LOOK)
    found: dict[str, dict[str, str]] = {}
    for name, port in asked:
        if why := seen.get((name, port), "no answer"):
            found.setdefault(name, {})[str(port)] = why
    return found


def _unreached(peer: tuple[str, int]) -> str:
    try:
        with contextlib.closing(socket.create_connection(peer, SECONDS)):
            return ""
    except ConnectionRefusedError:
        return ""
    except OSError as error:
        return "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
