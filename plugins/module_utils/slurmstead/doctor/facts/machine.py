# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Names, clock, accounts, key and file systems of this machine."""

from __future__ import annotations

import concurrent.futures
import grp
import hashlib
import hmac
import json
import pwd
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.reach.commands import run

KEY = Path("/etc/munge/munge.key")
MOUNTS = Path("/proc/self/mounts")
LOOK = 8.0
"""Seconds in which a name is resolved and a file system answers."""

AGAIN = 4.0
"""Seconds in which it answers where another one did not, which was waited for already."""

PEOPLE = range(1000, 60000)
"""Numbers of people's accounts (login.defs(5))."""


def addresses() -> list[str]:
    """Return the addresses of this machine that others can reach."""
    _, out, _ = run("ip", "--json", "address")
    entries = (entry for link in json.loads(out or "[]") for entry in link.get("addr_info", []))
    return sorted(entry["local"] for entry in entries if entry.get("scope") == "global")


def resolved(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the IPv4 addresses that this machine has for names; none for what it does not know in time."""

    def addresses_of(name: str) -> list[str]:
        try:
            found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            return []
        return sorted({str(address[0]) for *_, address in found})

    # Not ended by `with`, which would wait for a name server that does not answer.
    pool = concurrent.futures.ThreadPoolExecutor(16)
    asked = {name: pool.submit(addresses_of, name) for name in names}
    concurrent.futures.wait(asked.values(), LOOK)
    pool.shutdown(wait=False)
    return {name: answer.result() if answer.done() else [] for name, answer in asked.items()}


def clock() -> dict[str, Any]:
    """Return the `offset` (seconds) that chrony sees of this clock, and `error`: why it sees none."""
    code, out, err = run("chronyc", "-c", "-n", "tracking")
    fields = out.strip().split(",")
    if code or len(fields) < 14:
        return {"offset": None, "error": (err or out).strip() or "chronyc says nothing"}
    if fields[13] == "Not synchronised":
        return {"offset": None, "error": "no source of time"}
    return {"offset": float(fields[4]), "error": ""}


def accounts() -> dict[str, tuple[int, int]]:
    """Return the numbers (user, primary group) of people and of Slurm's own user, by name."""
    users = [user for user in pwd.getpwall() if user.pw_uid in PEOPLE or user.pw_name == "slurm"]
    return {user.pw_name: (user.pw_uid, user.pw_gid) for user in users}


def groups() -> dict[str, int]:
    """Return the numbers of people's groups by name."""
    return {group.gr_name: group.gr_gid for group in grp.getgrall() if group.gr_gid in PEOPLE}


def key(salt: str, path: Path = KEY) -> dict[str, Any]:
    """Return what may be known of the MUNGE key: owner and mode, when it was written, and a digest.

    The digest can be compared with those of other machines that got the same salt, and with nothing else.
    """
    try:
        status, content = path.stat(), path.read_bytes()
    except OSError as error:
        return {"error": error.strerror or str(error)}
    digest = hmac.new(salt.encode(), content, hashlib.sha256).hexdigest()[:16]
    mode = f"{status.st_mode & 0o7777:04o} {_name(pwd.getpwuid, status.st_uid)}:{_name(grp.getgrgid, status.st_gid)}"
    return {"error": "", "digest": digest, "mode": mode, "written": status.st_mtime}


def _name(find: Any, number: int) -> str:
    try:
        return str(find(number)[0])
    except KeyError:
        return str(number)


def paths(wanted: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what is mounted on each directory and how much is free (MiB), or the `error` that it answers with.

    Directories of one file system have the same `id`.
    A server that is gone may never answer, so another process asks. That mounts what is mounted on demand.
    """
    found = _space(wanted)
    mounts = mounted(MOUNTS.read_text())
    return {path: {**mounts.get(path, {"source": None}), **seen} for path, seen in found.items()}


def _space(wanted: Sequence[str], seconds: float = LOOK) -> dict[str, dict[str, Any]]:
    command = ("timeout", "--signal=KILL", str(seconds), "stat", "--file-system", "--format=%i %S %b %a %c %d")
    code, out, err = run(*command, *(f"{path}/." for path in wanted), seconds=seconds + 2)
    if code and len(wanted) > 1:
        # One of them does not answer, so each is asked alone.
        return {path: state for one in wanted for path, state in _space([one], AGAIN).items()}
    if code:
        return {path: {"error": err.strip().rpartition(": ")[2] or f"no answer in {LOOK:.0f} s"} for path in wanted}
    found = {}
    for path, line in zip(wanted, out.splitlines(), strict=True):
        identity, *numbers = line.split()
        unit, blocks, free, inodes, free_inodes = map(int, numbers)
        size = {"size": unit * blocks >> 20, "free": unit * free >> 20}
        found[path] = {"error": "", "id": identity, **size, "inodes": inodes, "free_inodes": free_inodes}
    return found


def mounted(text: str) -> dict[str, Mapping[str, Any]]:
    """Return source, type and whether only reading is possible of what is mounted, by path; the last one counts.

    >>> mounted("systemd-1 /share autofs rw 0 0\\nn3:/srv/share /share nfs4 ro,hard 0 0")["/share"]
    {'source': 'n3:/srv/share', 'type': 'nfs4', 'readonly': True}
    """
    rows = (line.split() for line in text.splitlines())
    return {
        where: {"source": source, "type": kind, "readonly": "ro" in options.split(",")}
        for source, where, kind, options, *_ in rows
        if kind != "autofs"
    }
