# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Whether a machine is on, by the words with which ssh(1) failed to reach it.

Its kernel refuses connections for as long as it runs, also when sshd has ended: only silence means that it is off.
"""

from __future__ import annotations

import re

NO_CONNECTION = re.compile(r"(?:connect to host (\S+) port \d+|connect failed): ([\w ]+)")
"""What ssh says of a connection that was not made, by itself or by the machine that it goes through (ProxyJump)."""

NO_NAME = re.compile(r"Could not resolve hostname \S+: Name or service not known")
"""A machine that gives itself its name (mDNS) has none while it is off."""

SILENT = frozenset({"Connection timed out", "No route to host", "Host is down"})

LOOPBACK = ("127.", "::1", "localhost")
"""A port that is forwarded from this computer is closed when the machine behind it is gone."""

ENDED = re.compile(r"closed by|reset by|[Bb]roken pipe|[Tt]imed out|Timeout, server|refused|going down")
"""What ssh says of a machine that is on its way down."""


def is_silent(said: str) -> bool:
    """Say whether nobody answers.

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
