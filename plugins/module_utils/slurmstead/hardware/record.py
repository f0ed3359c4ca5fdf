# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The record of a node's hardware, and its differences from a measurement."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from ansible.module_utils.slurmstead.conf.versions import series
from ansible.module_utils.slurmstead.reach import durable

MEMORY_TOLERANCE = 0.02
"""MemTotal varies between boots; smaller relative differences are ignored. Jobs get 5 % less anyway."""

STABLE = (
    *("architecture", "board", "compatible", "core_types", "cores", "cores_per_socket", "cpus", "fast_cores", "hwloc"),
    *("isolated_cpus", "memory", "numa_nodes", "offline_cpus", "slow_cores", "slow_cpus"),
    *("sockets", "threads_per_core"),
)
"""Values that do not change between boots, unlike `cpu_capacity`: some firmware measures clock rates at each boot."""

POWER = "power"
"""Key of the seconds that the machine takes to switch off and on, which `stead power test` measures."""

HEADER = "# Measured by site.yml; a node that is off keeps its place in the cluster by this file.\n"

SHRINKS = ("cpus", "memory")

UNITS = {"memory": " MiB"}


ADVICE = "Correct it, or delete it and run `stead up`"


class RecordError(Exception):
    """A record cannot be read; the text names the file and what to do."""

    def __init__(self, path: pathlib.Path, wrong: str) -> None:
        super().__init__(f"{path}: {wrong}. {ADVICE}")
        self.wrong = wrong


def read(path: pathlib.Path) -> dict[str, Any]:
    """Return a record, empty if the file is. Raises OSError and RecordError."""
    try:
        known = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except (yaml.YAMLError, ValueError) as error:
        known = f"no YAML ({' '.join(str(error).split())})"
    if isinstance(known, dict):
        return known
    raise RecordError(path, f"expected measured hardware, found {known}")


def same_memory(known: Any, measured: Any) -> bool:
    """Say whether the measured and the recorded memory are the same; both in MiB.

    >>> same_memory(7937, 7936), same_memory(7937, 3900), same_memory(None, 7937)
    (True, False, False)
    """
    return isinstance(known, int) and isinstance(measured, int) and abs(measured - known) <= known * MEMORY_TOLERANCE


def remembered(known: Mapping[str, Any], hardware: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new record of a measurement; `known` is the previous record.

    Slurm's version is shortened to its release (22.05), which determines its abilities. Disks have their stable name,
    and the kernel's name only if they have no other.
    """
    values = {key: hardware[key] for key in STABLE if key in hardware}
    if POWER in known:
        values[POWER] = known[POWER]
    if same_memory(known.get("memory"), hardware.get("memory")):
        values["memory"] = known["memory"]
    values["slurm"] = series(str(hardware.get("slurm"))) or known.get("slurm")
    names = ("id", "size", "model")
    disks = [{name: disk[name] for name in (names if disk["id"] else ("name", *names))} for disk in hardware["disks"]]
    values["disks"] = sorted(disks, key=lambda disk: str(disk["id"] or disk["name"]))
    return values


def changes(known: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield `key before -> after` for each value that differs; a key that is new in the record does not count.

    >>> list(changes({"cpus": 8, "memory": 7937}, {"cpus": 4, "memory": 7937, "cores": 4}))
    ['cpus 8 -> 4']
    """
    for key in sorted(known.keys() & new.keys()):
        before, after = known[key], new[key]
        if key == "disks":
            yield from (f"disk {name} is gone" for name in sorted(_names(before) - _names(after)))
            yield from (f"disk {name} is new" for name in sorted(_names(after) - _names(before)))
        elif isinstance(before, dict) and isinstance(after, dict):
            yield from (f"{key} {change}" for change in changes(before, after))
        elif before != after:
            unit = UNITS.get(key, "")
            yield f"{key} {before}{unit} -> {after}{unit}"


def _names(disks: Iterable[Mapping[str, Any]]) -> set[str]:
    return {str(disk.get("id") or disk.get("name")) for disk in disks}


def has_shrunk(known: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Say whether a node has fewer CPUs, less memory or fewer disks than before.

    A node with fewer packages but as many CPUs, as after a kernel update, has not shrunk.

    >>> has_shrunk({"cpus": 8, "sockets": 3}, {"cpus": 8, "sockets": 1}), has_shrunk({"cpus": 8}, {"cpus": 6})
    (False, True)
    """
    pairs = [(known.get(key), new.get(key)) for key in SHRINKS]
    fewer = any(isinstance(old, int) and isinstance(now, int) and now < old for old, now in pairs)
    return fewer or not _names(known.get("disks") or []) <= _names(new.get("disks") or [])


def keep(path: pathlib.Path, content: bytes) -> None:
    """Write a file atomically: if the disk is full, the previous record stays. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, content)
