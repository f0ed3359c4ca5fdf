# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What is remembered of a node's hardware, and how what was measured differs from it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.conf.versions import series
from ansible.module_utils.slurmstead.reach import durable

MEMORY_TOLERANCE = 0.02
"""MemTotal is not the same after each boot; a smaller relative difference is ignored. Jobs get 5 % less anyway."""

STABLE = (
    *("architecture", "board", "compatible", "core_types", "cores", "cores_per_socket", "cpus", "fast_cores", "hwloc"),
    *("isolated_cpus", "memory", "numa_nodes", "offline_cpus", "slow_cores", "slow_cpus"),
    *("sockets", "threads_per_core"),
)
"""What is the same after each boot. `cpu_capacity` is not: some firmware measures the highest clock at each boot."""

SHRINKS = ("cpus", "memory")

UNITS = {"memory": " MiB"}


def same_memory(known: Any, measured: Any) -> bool:
    """Say whether the measured memory is the remembered one, both in MiB.

    >>> same_memory(7937, 7936), same_memory(7937, 3900), same_memory(None, 7937)
    (True, False, False)
    """
    return isinstance(known, int) and isinstance(measured, int) and abs(measured - known) <= known * MEMORY_TOLERANCE


def remembered(known: Mapping[str, Any], hardware: Mapping[str, Any]) -> dict[str, Any]:
    """Return what to remember of what was measured; `known` is what was remembered until now.

    Slurm's version is kept to its release (22.05), which says what it can do. Disks have their stable name, and the
    kernel's only where there is no other.
    """
    values = {key: hardware[key] for key in STABLE if key in hardware}
    if same_memory(known.get("memory"), hardware.get("memory")):
        values["memory"] = known["memory"]
    values["slurm"] = series(str(hardware.get("slurm"))) or known.get("slurm")
    names = ("id", "size", "model")
    disks = [{name: disk[name] for name in (names if disk["id"] else ("name", *names))} for disk in hardware["disks"]]
    values["disks"] = sorted(disks, key=lambda disk: str(disk["id"] or disk["name"]))
    return values


def changes(known: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield `key before -> after` for each value that differs; a key that was not remembered before is no change.

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
    """Say whether a node has fewer CPUs, less memory or a disk less than before.

    One with fewer packages and as many CPUs, as after an update of the kernel, did not shrink.

    >>> has_shrunk({"cpus": 8, "sockets": 3}, {"cpus": 8, "sockets": 1}), has_shrunk({"cpus": 8}, {"cpus": 6})
    (False, True)
    """
    pairs = [(known.get(key), new.get(key)) for key in SHRINKS]
    fewer = any(isinstance(old, int) and isinstance(now, int) and now < old for old, now in pairs)
    return fewer or not _names(known.get("disks") or []) <= _names(new.get("disks") or [])


def keep(path: pathlib.Path, content: bytes) -> None:
    """Write a file as a whole: where the disk is full, what was known before stays. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, content)
