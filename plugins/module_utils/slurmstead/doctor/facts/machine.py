# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Names, clock, accounts, key and file systems of this machine."""

from __future__ import annotations

import grp
import hashlib
import hmac
import json
import pwd
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.doctor.facts.in_time import answers
from ansible.module_utils.slurmstead.identity.accounts import is_person
from ansible.module_utils.slurmstead.reach.commands import run

KEY = Path("/etc/munge/munge.key")
MOUNTS = Path("/proc/self/mounts")
LOOK = 8.0
"""Timeout in seconds for resolving a name and for the answer of a file system."""

AGAIN = 4.0
"""Timeout in seconds for a file system's answer after another one has already timed out."""


SPACE = """
import errno, json, os, sys
for path in sys.argv[1:]:
    try:
        seen = os.statvfs(path + "/.")
    except OSError as error:
        print(json.dumps({"error": error.strerror}))
        continue
    readonly = False
    try:
        os.removexattr(path + "/.", "user.slurmstead")
    except OSError as error:
        readonly = error.errno == errno.EROFS
    sizes = {"size": seen.f_frsize * seen.f_blocks >> 20, "free": seen.f_frsize * seen.f_bavail >> 20}
    inodes = {"inodes": seen.f_files, "free_inodes": seen.f_ffree}
    print(json.dumps({"error": "", "id": seen.f_fsid, "readonly": readonly, **sizes, **inodes}))
"""
"""Prints what each directory given has, as a line of JSON.

ext4 still says `rw` after an error that made it refuse changes (Linux 6.1.140 and later). Removing an attribute that
does not exist begins a change and makes none.
"""


def addresses() -> list[str]:
    """Return the addresses of this machine that other machines can reach."""
    _, out, _ = run("ip", "--json", "address")
    entries = (entry for link in json.loads(out or "[]") for entry in link.get("addr_info", []))
    return sorted(entry["local"] for entry in entries if entry.get("scope") == "global")


def misresolved(addresses: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the IPv4 addresses to which this machine resolves names, of the names that have another address, or more.

    :param addresses: the right address by name

    A name that is not resolved in time has none. Right answers are left out: all machines give one for all names.
    """

    def addresses_of(name: str) -> list[str]:
        try:
            found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            return []
        return sorted({str(address[0]) for *_, address in found})

    found = answers(addresses_of, addresses, LOOK)
    seen = {name: found.get(name, []) for name in addresses}
    return {name: those for name, those in seen.items() if those != [addresses[name]]}


def clock() -> dict[str, Any]:
    """Return this clock's `offset` in seconds according to chrony, and `error`: why chrony has none."""
    code, out, err = run("chronyc", "-c", "-n", "tracking")
    fields = out.strip().split(",")
    if code or len(fields) < 14:
        return {"offset": None, "error": (err or out).strip() or "chronyc printed nothing"}
    if fields[13] == "Not synchronised":
        return {"offset": None, "error": "no time source"}
    return {"offset": float(fields[4]), "error": ""}


def swap_used(text: str) -> int:
    """Return the MiB of swap in use, from the text of /proc/meminfo.

    >>> swap_used("MemTotal: 9 kB\\nSwapTotal: 4096 kB\\nSwapFree: 1024 kB\\n")
    3
    """
    fields = {key: int(value.split()[0]) for key, _, value in (line.partition(":") for line in text.splitlines())}
    return (fields.get("SwapTotal", 0) - fields.get("SwapFree", 0)) // 1024


def exports(text: str) -> list[dict[str, Any]]:
    """Return path, client and `readonly` of each NFS export, from the text of /var/lib/nfs/etab.

    >>> exports("/srv/share\\t10.0.0.1(ro,sync,wdelay)\\n")
    [{'path': '/srv/share', 'client': '10.0.0.1', 'readonly': True}]
    """
    rows = (re.match(r"(\S+)\s+(\S+)\((.*)\)$", line.strip()) for line in text.splitlines())
    return [{"path": row[1], "client": row[2], "readonly": "ro" in row[3].split(",")} for row in rows if row]


def accounts() -> dict[str, tuple[int, int]]:
    """Return the numeric IDs (user, primary group) of ordinary users and of Slurm's own user, by name."""
    users = [user for user in pwd.getpwall() if is_person(user.pw_uid) or user.pw_name == "slurm"]
    return {user.pw_name: (user.pw_uid, user.pw_gid) for user in users}


def groups() -> dict[str, int]:
    """Return the numeric IDs of ordinary users' groups, by name."""
    return {group.gr_name: group.gr_gid for group in grp.getgrall() if is_person(group.gr_gid)}


def key(salt: str, path: Path = KEY) -> dict[str, Any]:
    """Return the facts about the MUNGE key that are not secret: owner and mode, time of writing, and a digest.

    The digest can only be compared with those of other machines that used the same salt.
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
    """Return the mount and the free space (MiB) of each directory, and whether it is `readonly`; or its `error`.

    Directories of one file system have the same `id`.
    A lost server may never answer, so a separate process asks. This also triggers automounts.
    """
    found = _space(wanted)
    mounts = mounted(MOUNTS.read_text(errors="replace"))
    return {path: {**mounts.get(path, {"source": None}), **seen} for path, seen in found.items()}


def _space(wanted: Sequence[str], seconds: float = LOOK) -> dict[str, dict[str, Any]]:
    command = ("timeout", "--signal=KILL", str(seconds), sys.executable, "-I", "-S", "-c", SPACE)
    code, out, _ = run(*command, *wanted, seconds=seconds + 2)
    if code and len(wanted) > 1:
        # At least one does not answer, so ask each separately.
        return {path: state for one in wanted for path, state in _space([one], AGAIN).items()}
    if code:
        return {path: {"error": f"no answer in {LOOK:.0f} s"} for path in wanted}
    return dict(zip(wanted, map(json.loads, out.splitlines()), strict=True))


def mounted(text: str) -> dict[str, Mapping[str, Any]]:
    """Return source and type of each mount, by path; of several on one path, the last one counts.

    Users choose names of mounts, in which the kernel escapes space, tab, line break and backslash only.

    >>> mounted("systemd-1 /share autofs rw 0 0\\nn3:/srv/share /share nfs4 ro,hard 0 0")["/share"]
    {'source': 'n3:/srv/share', 'type': 'nfs4'}
    """
    rows = (line.split(" ") for line in text.split("\n") if line)
    return {where: {"source": source, "type": kind} for source, where, kind, *_ in rows if kind != "autofs"}
