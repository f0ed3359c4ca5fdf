# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Measures a machine from /sys and /proc. Each function takes the root of a tree; missing values are None or empty.

Source of /sys/devices/system/cpu: Documentation/ABI/stable/sysfs-devices-system-cpu of the kernel.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import re
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.hardware.kernel_files import cgroup, text

FAST = 0.75
"""A core is fast from this fraction of the highest capacity: fast cores of one chip differ by a few per cent."""

SLURMD_KEYS = ("CPUs", "Boards", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore", "RealMemory")

QUIET = Path("/run/slurmstead-quiet.json")
"""Exists while a job is alone on this node, for which CPUs may be switched off (role `quiet`)."""

NO_DISK = re.compile(r"(loop|ram|zram|sr|fd|dm-|md|nbd|drbd)\d+|mmcblk\d+(boot\d+|rpmb)")
"""Block devices that are not disks."""


def expand(cpus: str) -> set[int]:
    """Return the numbers in a list of CPUs; anything else is ignored.

    >>> sorted(expand("0-2,8"))
    [0, 1, 2, 8]
    """
    numbers: set[int] = set()
    for match in re.finditer(r"(\d+)(?:-(\d+))?", cpus):
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return numbers


def compress(cpus: Iterable[int]) -> str:
    """Return a list of CPUs as the kernel writes it.

    >>> compress({0, 1, 2, 8})
    '0-2,8'
    """
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


@dataclasses.dataclass(frozen=True)
class Cpu:
    """An online CPU: the names of its core, cluster and package, and its capacity (the fastest has 1024)."""

    package: str
    core: str
    cluster: str | None
    capacity: int | None


def cpus(root: Path) -> dict[int, Cpu]:
    """Return the online CPUs by number. A CPU without topology counts as a separate core."""
    directory = root / "sys/devices/system/cpu"
    online = text(directory / "online")
    if online is None:
        # Only online CPUs have a topology.
        names = (path.parts[-2] for path in directory.glob("cpu[0-9]*/topology"))
        online = ",".join(name.removeprefix("cpu") for name in names)
    return {number: _cpu(directory / f"cpu{number}", number) for number in sorted(expand(online))}


def _cpu(path: Path, number: int) -> Cpu:
    topology = path / "topology"
    cluster = text(topology / "cluster_id")
    capacity = text(path / "cpu_capacity")
    return Cpu(
        package=text(topology / "physical_package_id") or "-1",
        # Linux before 5.3 has only the second name.
        core=text(topology / "core_cpus_list") or text(topology / "thread_siblings_list") or str(number),
        # Linux has no cluster number if the firmware describes no clusters.
        cluster=None if cluster in (None, "", "-1", "65535") else cluster,
        capacity=int(capacity) if capacity and capacity.isdigit() else None,
    )


def arrangement(found: Mapping[int, Cpu]) -> dict[str, int | None]:
    """Return the arrangement of CPUs; if packages or cores differ, the largest one counts."""
    if not found:
        return dict.fromkeys(("cpus", "sockets", "cores", "cores_per_socket", "threads_per_core", "clusters"))
    threads = collections.Counter((cpu.package, cpu.core) for cpu in found.values())
    cores = collections.Counter(package for package, _ in threads)
    clusters = {(cpu.package, cpu.cluster) for cpu in found.values() if cpu.cluster is not None}
    return {
        "cpus": len(found),
        "sockets": len(cores),
        "cores": len(threads),
        "cores_per_socket": max(cores.values()),
        "threads_per_core": max(threads.values()),
        "clusters": len(clusters) or None,
    }


def capacities(found: Mapping[int, Cpu]) -> dict[str, int]:
    """Return capacity by list of CPUs; empty if the kernel reports none."""
    groups: dict[int, list[int]] = {}
    for number, cpu in found.items():
        if cpu.capacity is not None:
            groups.setdefault(cpu.capacity, []).append(number)
    return {compress(numbers): capacity for capacity, numbers in sorted(groups.items(), key=lambda group: group[1])}


def core_types(root: Path) -> dict[str, str]:
    """Return the CPUs by Intel's type of their cores, `core` (fast) and `atom` (slow); empty elsewhere."""
    lists = {kind: text(root / f"sys/devices/cpu_{kind}/cpus") for kind in ("core", "atom")}
    return {kind: compress(expand(cpus)) for kind, cpus in lists.items() if cpus}


def slow_cpus(found: Mapping[int, Cpu], types: Mapping[str, str]) -> set[int]:
    """Return the CPUs of slow cores; empty if all are alike or the kernel does not say."""
    known = {number: cpu.capacity for number, cpu in found.items() if cpu.capacity is not None}
    highest = max(known.values(), default=0)
    by_capacity = {number for number, capacity in known.items() if capacity < FAST * highest}
    return expand(types.get("atom", "")) or by_capacity


def fast_and_slow(found: Mapping[int, Cpu], slow_cpus: Container[int]) -> tuple[int, int]:
    """Return the numbers of fast and of slow cores; 0 and 0 if all are alike or the kernel does not say."""
    slow = {(cpu.package, cpu.core) for number, cpu in found.items() if number in slow_cpus}
    fast = {(cpu.package, cpu.core) for cpu in found.values()} - slow
    return (len(fast), len(slow)) if fast and slow else (0, 0)


def offline(root: Path) -> str | None:
    """Return the CPUs that are present and switched off."""
    directory = root / "sys/devices/system/cpu"
    present, online = text(directory / "present"), text(directory / "online")
    # The kernel's list of offline CPUs also contains CPUs that could be hot-plugged.
    return None if present is None or online is None else compress(expand(present) - expand(online))


def numa_nodes(root: Path) -> int | None:
    """Return the number of NUMA nodes; None if the kernel reports none."""
    return len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None


def memory(root: Path) -> int | None:
    """Return MemTotal of proc(5)'s meminfo in MiB, rounded down."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", text(root / "proc/meminfo") or "", re.MULTILINE)
    return int(match[1]) // 1024 if match else None


def device_tree(root: Path) -> dict[str, Any]:
    """Return the names in the device tree: `board` is readable, `compatible` goes from the board to its chip."""
    strings = {name: text(root / "proc/device-tree" / name) for name in ("model", "compatible")}
    names = {name: [part for part in (value or "").split("\0") if part] for name, value in strings.items()}
    return {"board": next(iter(names["model"]), None), "compatible": names["compatible"]}


def disks(root: Path) -> list[dict[str, Any]]:
    """Return `name`, `id` (the first stable name), `size` (bytes) and `model` of each disk, sorted by name."""
    by_id: dict[str, list[str]] = {}
    directory = root / "dev/disk/by-id"
    for link in sorted(directory.iterdir()) if directory.is_dir() else []:
        if link.is_symlink() and not link.name.startswith("lvm-pv-uuid-"):
            by_id.setdefault(os.path.basename(os.readlink(link)), []).append(link.name)
    block = root / "sys/block"
    found = []
    for path in sorted(block.iterdir()) if block.is_dir() else []:
        size = text(path / "size") or ""
        if NO_DISK.fullmatch(path.name) or not size.isdigit() or int(size) == 0:
            continue
        found.append(
            {
                "name": path.name,
                "id": next(iter(by_id.get(path.name, [])), None),
                "size": int(size) * 512,  # in units of 512 bytes, whatever the disk's sectors are
                "model": text(path / "device/model") or text(path / "device/name") or None,
            }
        )
    return found


def slurmd_says(stdout: str) -> dict[str, int] | None:
    """Return the numbers in the line that `slurmd -C` prints; None if there is no such line.

    >>> slurmd_says("NodeName=a CPUs=8 Boards=3 SocketsPerBoard=0\\nUpTime=0-01:00:00\\n")
    {'CPUs': 8, 'Boards': 3, 'SocketsPerBoard': 0}
    """
    line = next((line for line in stdout.splitlines() if line.startswith("NodeName=")), None)
    if line is None:
        return None
    pairs = dict(re.findall(r"(\w+)=(\d+)(?=\s|$)", line))
    return {key: int(pairs[key]) for key in SLURMD_KEYS if key in pairs}


def measure(root: Path) -> dict[str, Any]:
    """Return all measurements from the files of a machine."""
    found = cpus(root)
    types = core_types(root)
    slow_ones = slow_cpus(found, types)
    fast, slow = fast_and_slow(found, slow_ones)
    return {
        **arrangement(found),
        "numa_nodes": numa_nodes(root),
        "cpu_capacity": capacities(found),
        "core_types": types,
        "fast_cores": fast,
        "slow_cores": slow,
        "slow_cpus": compress(slow_ones),
        "offline_cpus": offline(root),
        "isolated_cpus": text(root / "sys/devices/system/cpu/isolated"),
        "memory": memory(root),
        **device_tree(root),
        "cgroup": cgroup(root),
        "disks": disks(root),
    }
