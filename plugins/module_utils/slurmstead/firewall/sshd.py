# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""How ssh reaches this machine: the ports of its sshd, and the connection that this process came over."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ansible.module_utils.slurmstead.reach.commands import run

PROC = Path("/proc")


class Connection(NamedTuple):
    """An ssh connection: the client's address, and the port of sshd here."""

    client: str
    port: int


def connection(pid: int | None = None) -> Connection | None:
    """Return the ssh connection over which a process, by default this one, was started; None without one.

    sudo drops SSH_CONNECTION from the environment, so the process's ancestors are asked.
    """
    pid = pid or os.getpid()
    while pid > 1:
        try:
            environment = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
            parent = int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return None
        for variable in environment:
            if variable.startswith(b"SSH_CONNECTION="):
                words = variable.decode(errors="replace").partition("=")[2].split()
                return Connection(words[0].partition("%")[0], int(words[3])) if len(words) == 4 else None
        pid = parent
    return None


def interface(address: str) -> str:
    """Return the interface through which this machine answers an address; empty if that cannot be told."""
    found = re.search(r" dev (\S+)", run("ip", "-oneline", "route", "get", address)[1])
    return found[1] if found else ""


def ports() -> list[int]:
    """Return the TCP ports of sshd, by its configuration; 22 if it cannot tell."""
    _, out, _ = run("sshd", "-T")
    # A port of its own in ListenAddress is not among the ports.
    found = re.findall(r"^(?:port |listenaddress \S+:)(\d+)$", out, re.MULTILINE)
    return sorted({int(port) for port in found}) or [22]


def penalizes() -> bool:
    """Say whether sshd refuses addresses from which logins have failed (since OpenSSH 9.8)."""
    return "\npersourcepenalties " in run("sshd", "-T")[1]
