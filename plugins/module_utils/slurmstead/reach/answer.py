# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Whether a machine is on, according to the error of a failed ssh(1).

A running kernel refuses connections even if sshd has ended, so only a missing answer means that a machine is off.
"""

from __future__ import annotations

import re
from collections.abc import Collection

NO_CONNECTION = re.compile(r"(?:connect to host (\S+) port \d+|connect failed): ([\w ]+)")
"""ssh's error for a failed connection, either its own or from the jump host (ProxyJump)."""

NO_NAME = re.compile(r"Could not resolve hostname (\S+): Name or service not known")
"""A machine that announces its own name (mDNS) cannot be resolved while it is off."""

SILENT = frozenset({"Connection timed out", "No route to host", "Host is down"})

LOOPBACK = ("127.", "::1", "localhost")
"""A port forwarded from this computer is closed when the machine behind it has ended."""

ENDED = re.compile(r"closed by|reset by|[Bb]roken pipe|[Tt]imed out|Timeout, server|refused|going down")
"""ssh's errors for a machine that is shutting down."""


def is_silent(said: str) -> bool:
    """Say whether an error means that no machine answered.

    >>> is_silent("ssh: connect to host 10.0.0.4 port 22: No route to host")
    True
    >>> is_silent("ssh: connect to host 10.0.0.4 port 22: Connection refused")
    False
    """
    if NO_NAME.search(said):
        return True
    return any(
        why in SILENT or (why == "Connection refused" and host.startswith(LOOPBACK))
        for host, why in NO_CONNECTION.findall(said)
    )


def silent_on_the_way(said: str, own: Collection[str]) -> str:
    """Return what did not answer, if it is on the way to the machine; empty if the machine itself did not.

    :param said: an error of which `is_silent` is true
    :param own: addresses of the machine itself, as ssh knows them

    >>> silent_on_the_way("ssh: connect to host 192.0.2.9 port 22: No route to host", {"10.0.0.4"})
    '192.0.2.9'
    >>> silent_on_the_way("ssh: connect to host 10.0.0.4 port 22: No route to host", {"10.0.0.4"})
    ''
    """
    # A jump host names no address of the machine behind it, so an empty one is the machine's.
    hosts = [host for host, _ in NO_CONNECTION.findall(said)] + NO_NAME.findall(said)
    others = [host for host in hosts if host and host not in own]
    # Each ssh whose own jump host gives up says this. So the first of two jump hosts did not reach the second.
    return others[0] if others else "a jump host" * (said.count("by UNKNOWN port") > 1)
