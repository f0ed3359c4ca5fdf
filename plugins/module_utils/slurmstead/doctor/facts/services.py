# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Units, processes, packages and open ports of this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.identity import sessions
from ansible.module_utils.slurmstead.reach.commands import printable, run
from ansible.module_utils.slurmstead.slurm import state

PROC = Path("/proc")
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROPERTIES = "Id,LoadState,ActiveState,SubState,UnitFileState,MainPID,NeedDaemonReload,Result"
DELETED = re.compile(r"^\S+ ..x\S* .* (/usr/\S+) \(deleted\)$", re.MULTILINE)
"""Executable mapping in /proc/PID/maps of a replaced file."""

SOCKET = re.compile(r"^(?:LISTEN|UNCONN) +\d+ +\d+ +(\S+):(\d+) +\S+:\*", re.MULTILINE)
"""How the line of a socket begins in the output of ss(8), with address and port."""

OWNER = re.compile(r'\("(.*?)",pid=(\d+),fd=\d+\)(?=,\("|\)\s*\Z)', re.DOTALL)
"""A process that has the socket. Users choose the names, also with line breaks, and with words like those around."""

FATAL = re.compile(r"^\w+: (?:fatal|Error): (.*)$", re.MULTILINE)
"""Log line in which a daemon of Slurm or MUNGE reports why it ends."""


def units(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the state of units by name; if the main process is `outdated`, also why."""
    _, out, _ = run("systemctl", "show", f"--property={PROPERTIES}", *names)
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in out.split("\n\n")]
    shown = dict(zip(names, blocks, strict=False))
    return {name: _unit(name, shown.get(name, {})) for name in names}


def _unit(name: str, shown: dict[str, str]) -> dict[str, Any]:
    pid = int(shown.get("MainPID") or 0)
    failed = shown.get("ActiveState") in ("failed", "activating") and shown.get("Result") != "success"
    return {
        "load": shown.get("LoadState", ""),
        "active": shown.get("ActiveState", ""),
        "sub": shown.get("SubState", ""),
        "enabled": shown.get("UnitFileState", ""),
        "result": shown.get("Result", ""),
        "said": died_of(name) if failed else "",
        "reload": shown.get("NeedDaemonReload") == "yes",
        "pid": pid,
        "started": started(pid),
        "outdated": outdated(pid),
    }


def died_of(unit: str) -> str:
    """Return why a unit's daemon last ended; empty if it logged no reason."""
    _, out, _ = run("journalctl", "--quiet", "--boot", "--output=cat", "--lines=50", f"--unit={unit}")
    said = FATAL.findall(out)
    return state.advised(said[-1]) if said else ""


def started(pid: int) -> float:
    """Return when a process started (seconds since 1970); 0 without one."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = re.search(r"^btime (\d+)$", (PROC / "stat").read_text(), re.MULTILINE)
    except OSError:
        return 0.0
    return int(boot[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK") if boot else 0.0


def outdated(pid: int) -> str:
    """Return a file that was replaced after the process opened it; empty if there is no such file."""
    try:
        program = os.readlink(PROC / str(pid) / "exe")
        maps = (PROC / str(pid) / "maps").read_text()
    except OSError:
        return ""
    if program.endswith(" (deleted)"):
        return program.removesuffix(" (deleted)")
    replaced = DELETED.search(maps)
    return replaced[1] if replaced else ""


def failed_units() -> list[str]:
    """Return the names of the units that failed."""
    _, out, _ = run("systemctl", "list-units", "--state=failed", "--plain", "--no-legend", "--full")
    return [line.split()[0] for line in out.splitlines() if line.split()]


def packages() -> dict[str, str]:
    """Return the versions of the installed packages that must match those of other machines."""
    _, out, _ = run("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package} ${Version}\\n", *PACKAGES)
    rows = (line.split() for line in out.splitlines())
    return {row[1]: row[2] for row in rows if len(row) == 3 and row[0] == "installed"}


def tables() -> list[str]:
    """Return the tables of nftables in the kernel, each with its family."""
    return [line.removeprefix("table ").strip() for line in run("nft", "list", "tables")[1].splitlines()]


def listening(protocol: str = "tcp") -> list[dict[str, Any]]:
    """Return the ports that processes other than jobs have open beyond loopback.

    A port without a process belongs to the kernel, such as that of NFS.

    :param protocol: tcp or udp
    """
    _, out, _ = run("ss", "--no-header", "--listening", f"--{protocol}", "--numeric", "--processes")
    return [port for port in ports(out) if not sessions.JOB.search(_control_groups(port["pid"]))]


def ports(text: str) -> Iterator[dict[str, Any]]:
    """Yield address, port, process and process ID of each socket in the output of `ss`.

    >>> list(ports('LISTEN 0 5 0.0.0.0%eth0:8000 0.0.0.0:* users:(("python3",pid=7,fd=3))'))
    [{'address': '0.0.0.0', 'port': 8000, 'process': 'python3', 'pid': 7}]
    >>> list(ports(""))
    []
    """
    found = list(SOCKET.finditer(text))
    ends = [*(socket.start() for socket in found[1:]), len(text)]
    for socket, end in zip(found, ends, strict=False):
        owners = OWNER.findall(text[socket.end() : end])
        address, port = socket[1].partition("%")[0].strip("[]").removeprefix("::ffff:"), socket[2]
        if owners and not address.startswith("127.") and address != "::1":
            # With socket activation, both systemd and the service own the socket.
            name, pid = min(owners, key=lambda owner: owner[0] == "systemd")
            yield {"address": address, "port": int(port), "process": printable(name), "pid": int(pid)}


def _control_groups(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cgroup").read_text(errors="replace")
    except OSError:
        return ""
