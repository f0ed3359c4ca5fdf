# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The cluster's share as the machines have it now, and how the inventory differs from that.

The machines are asked, not a record: their active mount units, their mounts, and the directory that one exports.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.storage import disks, mounts, units

DESCRIPTION = "The cluster's share"
"""Description of the mount unit that the role nfs_client writes."""

EXPORTS = Path("/etc/exports.d/slurmstead.exports")
"""The exports that the role nfs_server writes."""

MARK = ".slurmstead-copy"
"""Directory in the root of a copy that is not the share yet; only root can enter it. Its file `original` contains
HOST:DIRECTORY of the original, its directory `files` what was copied until all of it was compared."""

COPY_HINT = "`scripts/stead move-share` completes the move; the earlier values in the inventory undo it"

State = Mapping[str, Any]
"""What `found` returns for a machine."""

Wanted = Mapping[str, Any]
"""The share in the inventory: `host` and `address` of the server, its directory `source`, the mount point `path`, and
`local`: whether all machines have direct access to `source`."""


def found(source: str, path: str) -> dict[str, Any]:
    """Return what this machine has of a share. Asks no other machine, so a lost server does not delay it.

    clients   the mounts that are active, now or at the next boot: server (an address; empty without NFS), source, path
    exported  the directory that it exports; empty if none
    data      whether that directory contains anything
    copy_of   HOST:DIRECTORY of the original, if `source` is an incomplete copy
    readonly  whether a move has made `source` or the mount at `path` read-only, now or at the next boot; an error of a
              disk does not do that (mount(2), MS_BIND)

    :param source: the directory of the share in the inventory
    :param path: the mount point in the inventory
    """
    seen = mounts.mounts()
    export = exported()
    tops = {mount.path: mount for mount in seen}
    return {
        "clients": [dict(client) for client in sorted({tuple(one.items()) for one in _clients(seen, path)})],
        "exported": export,
        "data": holds_data(export) if export else False,
        "copy_of": original(source) if source else "",
        "readonly": units.old_drop_in(source).exists()
        or any(place in tops and tops[place].readonly for place in (source, path)),
    }


def unmounted(path: str) -> str:
    """Return the name of the unit that must mount a file system at a path, while nothing is mounted there."""
    unit = units.UNITS / f"{units.escape(path)}.mount"
    if any(mount.path == path for mount in mounts.mounts()):
        return ""
    return unit.name if unit.exists() and units.OLD not in disks.read_text(unit) else ""


def _clients(seen: list[mounts.Mount], path: str) -> Iterator[dict[str, str]]:
    """Yield the shares that this machine mounts: those of our units, and what NFS has mounted at the same paths."""
    paths = {path}
    for unit in sorted(units.UNITS.glob("*.mount")):
        given = dict(re.findall(r"^(\w+)=(.*)$", disks.read_text(unit), re.MULTILINE))
        where = given.get("Where", "")
        enabled = units.UNITS / "multi-user.target.wants" / f"{unit.stem}.automount"
        active = enabled.is_symlink() or any(mount.path == where and mount.filesystem != "autofs" for mount in seen)
        if given.get("Description") == DESCRIPTION and active:
            paths.add(where)
            yield _client(given.get("What", ""), where)
    for mount in seen:
        if mount.path in paths and mount.filesystem.startswith("nfs"):
            yield _client(mount.source, mount.path)


def _client(what: str, path: str) -> dict[str, str]:
    server, _, source = what.rpartition(":")
    return {"server": server, "source": source, "path": path}


def exported() -> str:
    """Return the directory that this machine exports as the share; empty if none."""
    lines = [line.split() for line in disks.read_text(EXPORTS).splitlines() if line.startswith("/")]
    return lines[0][0] if lines else ""


def original(copy: str) -> str:
    """Return HOST:DIRECTORY of the original of an incomplete copy; empty for any other directory."""
    return disks.read_text(Path(copy, MARK, "original"))


def holds_data(directory: str) -> bool:
    """Say whether a directory exists and contains anything except the directory of e2fsck(8) and the mark of a copy."""
    try:
        return bool(set(os.listdir(directory)) - {"lost+found", MARK})
    except OSError:
        return False


def is_established(machines: Mapping[str, State], wanted: Wanted) -> bool:
    """Say whether the server in the inventory already exports the share with data.

    Its address may have changed since the others mounted it.
    """
    here = machines.get(wanted["host"], {})
    return bool(here and here["exported"] == wanted["source"] and here["data"] and not here["copy_of"])


def places(
    machines: Mapping[str, State], wanted: Wanted, addresses: Mapping[str, str]
) -> dict[tuple[str, str, str], list[str]]:
    """Return the shares that the machines have now, each with the machines that mount or export it.

    A share is the name of its server (its address if the inventory has no such machine), the directory there, and the
    mount point; the last is that of the inventory if the server only exports it.
    """
    names = {address: name for name, address in addresses.items()}
    result: dict[tuple[str, str, str], list[str]] = {}
    for host, state in machines.items():
        for client in state["clients"]:
            here = wanted["host"] if wanted["local"] else host
            server = names.get(client["server"], client["server"]) if client["server"] else here
            result.setdefault((server, client["source"], client["path"]), []).append(host)
        if state["exported"] and state["data"]:
            result.setdefault((host, state["exported"], wanted["path"]), []).append(host)
    return result


def problems(machines: Mapping[str, State], wanted: Wanted, addresses: Mapping[str, str]) -> list[str]:
    """Return why a run would replace the share by another one; empty if it would not.

    :param machines: what `found` returned, by name of the machines that were reached
    :param addresses: addresses in the inventory, by name of the machine
    """
    host, source, path = wanted["host"], wanted["source"], wanted["path"]
    here = machines.get(host, {})
    if here and here["copy_of"]:
        return [f"{host}:{source} is an incomplete copy of the share {here['copy_of']}: {COPY_HINT}"]
    if here and here["readonly"]:
        return [f"{host}:{source} is read-only since a move was interrupted: {COPY_HINT}"]
    established = is_established(machines, wanted)
    changes: dict[str, list[str]] = {}
    for (server, directory, point), users in places(machines, wanted, addresses).items():
        # A machine that was off during a move still has the earlier server in its unit.
        exported = machines.get(server, {}).get("exported") == directory
        if not established or (exported and (server, directory) != (host, source)):
            _note(changes, "group nfs_server", server, host, users)
            _note(changes, "nfs_server_path and nfs_client_source", directory, source, users)
        _note(changes, "nfs_client_path", point, path, users)
    if not changes:
        return []
    words = "; ".join(f"{text} (on {', '.join(sorted(set(users)))})" for text, users in changes.items())
    return [
        f"the inventory has another share than the machines: {words}. Jobs and homes would lose their files. Set the "
        "earlier value again, or move the share with all its files: scripts/stead move-share"
    ]


def _note(changes: dict[str, list[str]], variable: str, now: str, wanted: str, users: list[str]) -> None:
    if now != wanted:
        changes.setdefault(f"{variable}: now {now}, in the inventory {wanted}", []).extend(users)


def is_below(one: str, other: str) -> bool:
    """Say whether one of two directories contains the other.

    >>> is_below("/srv", "/srv/share"), is_below("/srv/share", "/srv/share2")
    (True, False)
    """
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def plan(
    machines: Mapping[str, State], wanted: Wanted, addresses: Mapping[str, str], leave: bool = False
) -> dict[str, Any]:
    """Return how the share gets to its place in the inventory, from what the machines have.

    problems  why it cannot be moved
    moves     whether any machine must mount another share than now
    copies    whether files must be copied; not if a machine already uses the copy, which was then compared
    origin    the machine with the original, empty if none; `source` is its directory there
    paths     the mount points that machines have now
    leavers   the machines that must unmount one of them

    :param machines: what `found` returned, by name of the machine
    :param leave: leave the files where they are; the original may be lost
    """
    host, source, path = wanted["host"], wanted["source"], wanted["path"]
    here = machines[host]
    now = places(machines, wanted, addresses)
    others = {(server, directory) for server, directory, _ in now} - {(host, source)}
    leavers = {name for place, names in now.items() if place != (host, source, path) for name in names}
    paths = {client["path"] for state in machines.values() for client in state["clients"]}
    result: dict[str, Any] = {"problems": [], "moves": False, "copies": False, "origin": "", "source": ""}
    result |= {"paths": sorted(paths), "leavers": sorted(leavers)}
    if is_established(machines, wanted):
        rivals = sorted(f"{server}:{place}" for server, place in others if machines.get(server, {}).get("data"))
        rivals = [rival for rival in rivals if machines[rival.partition(":")[0]]["exported"] == rival.partition(":")[2]]
        if rivals:
            said = f"{host}:{source} and {' and '.join(rivals)} both contain a share; their files cannot be merged"
            return {**result, "problems": [f"{said}. Unmount and move away the files of one of them by hand"]}
    elif others or here["copy_of"]:
        marked = tuple(here["copy_of"].split(":", 1)) if here["copy_of"] else None
        origins = sorted(others | ({marked} if marked else set()))
        if len(origins) > 1:
            said = " and ".join(f"{server}:{place}" for server, place in origins)
            return {
                **result,
                "problems": [f"the machines have more than one share: {said}. Remove one of them by hand"],
            }
        result["origin"], result["source"] = origins[0]
        begun = here["exported"] == source or (host, source, path) in now
        result["copies"] = not leave and not begun
    result["moves"] = bool(here["copy_of"] or set(now) - {(host, source, path)})
    if result["copies"] and result["origin"] == host and is_below(source, result["source"]):
        said = f"{source} is inside of {result['source']}, or the other way round: choose another directory"
        result["problems"] = [said]
    elif result["copies"] and result["origin"] not in machines:
        hint = "add it to the inventory, as a worker if it has no other function, or use --leave-data if it is lost"
        result["problems"] = [f"the share is on {result['origin']}, which is not in the inventory: {hint}"]
    if leave:
        result["origin"] = ""
    return result
