"""Machines as /sys and hwloc show them, from a line or two each."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from ansible.module_utils.slurmstead.hardware import hwloc
from ansible.module_utils.slurmstead.hardware.measure import compress, expand
from ansible.module_utils.slurmstead.hardware.measure import measure as measure_machine


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine.

    `packages` has a word for each package: its cores, such as `8x2` for eight with two threads, `8x2+4` for eight with
    two and four with one. CPUs are numbered in that order.
    """

    packages: str
    memory: int
    """MiB"""
    architecture: str = "x86_64"
    compatible: str = ""
    """names in the device tree, separated by spaces"""
    capacity: str = ""
    """a word for each kind of CPU: `4*414 4*1024`"""
    types: dict[str, str] = dataclasses.field(default_factory=dict)
    """Intel's types of cores, and their CPUs"""
    offline: str = ""
    isolated: str = ""
    nameless: bool = False
    """whether the firmware names no packages"""
    clusters: tuple[int, ...] = ()
    """cores of each cluster of the first package, which hwloc shows as a group"""
    numa: str | int = "package"
    """what has a NUMA node: `machine`, `package`, or equal parts of each package, which hwloc shows as groups"""
    l3: str | int = ""
    """what has an L3 cache: `machine`, `package`, or so many equal parts of each package"""
    hwloc: bool = True
    """whether hwloc's library is there"""

    def cores(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the package and the CPUs of each core."""
        cpu = 0
        for package, word in enumerate(self.packages.split()):
            for part in word.split("+"):
                count, _, threads = part.partition("x")
                for _ in range(int(count)):
                    yield package, list(range(cpu, cpu + int(threads or 1)))
                    cpu += int(threads or 1)

    def online(self) -> list[tuple[int, list[int]]]:
        """Return the cores with the CPUs that are online."""
        off = expand(self.offline)
        cores = [(package, [cpu for cpu in cpus if cpu not in off]) for package, cpus in self.cores()]
        return [(package, cpus) for package, cpus in cores if cpus]


def write(root: pathlib.Path, path: str, text: str) -> None:
    """Write a file below a root."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def build(root: pathlib.Path, machine: Machine) -> pathlib.Path:
    """Make the files of a machine below a root."""
    everything = [cpu for _, cpus in machine.cores() for cpu in cpus]
    directory = "sys/devices/system/cpu"
    write(root, f"{directory}/present", compress(everything) + "\n")
    write(root, f"{directory}/isolated", machine.isolated + "\n")
    write(root, f"{directory}/online", compress(cpu for _, cpus in machine.online() for cpu in cpus) + "\n")
    words = [word.split("*") for word in machine.capacity.split()]
    capacity = [value for count, value in words for _ in range(int(count))]
    for package, cpus in machine.online():
        for cpu in cpus:
            topology = f"{directory}/cpu{cpu}/topology"
            write(root, f"{topology}/physical_package_id", "-1\n" if machine.nameless else f"{package}\n")
            write(root, f"{topology}/core_cpus_list", compress(cpus) + "\n")
            if capacity:
                write(root, f"{directory}/cpu{cpu}/cpu_capacity", capacity[cpu] + "\n")
    for kind, cpus_of_kind in machine.types.items():
        write(root, f"sys/devices/cpu_{kind}/cpus", cpus_of_kind + "\n")
    if machine.compatible:
        write(root, "proc/device-tree/compatible", machine.compatible.replace(" ", "\0") + "\0")
    write(root, "proc/meminfo", f"MemTotal: {machine.memory * 1024} kB\nMemFree: 1 kB\n")
    return root


def element(kind: str, *children: str, number: int = 0) -> str:
    """Return an object of hwloc's XML."""
    return f'<object type="{kind}" os_index="{number}">{"".join(children)}</object>'


def parts(things: list[str], count: int) -> list[list[str]]:
    """Return things in so many parts of the same size."""
    size = len(things) // count
    return [things[start : start + size] for start in range(0, len(things), size)]


def export(machine: Machine) -> str:
    """Return what hwloc exports of a machine."""
    numa = iter(range(1000))

    def memory(wanted: bool) -> list[str]:
        return [element("NUMANode", number=next(numa))] if wanted else []

    packages = []
    for package in dict.fromkeys(package for package, _ in machine.online()):
        of_package = [cpus for own, cpus in machine.online() if own == package]
        cores = [element("Core", *(element("PU", number=cpu) for cpu in cpus)) for cpus in of_package]
        if isinstance(machine.l3, int):
            cores = [element("L3Cache", *part) for part in parts(cores, machine.l3)]
        if isinstance(machine.numa, int):
            cores = [element("Group", *memory(True), *part) for part in parts(cores, machine.numa)]
        elif machine.clusters and package == 0:
            edges = [sum(machine.clusters[:index]) for index in range(len(machine.clusters) + 1)]
            cores = [element("Group", *cores[first:last]) for first, last in zip(edges, edges[1:], strict=False)]
        content = [element("L3Cache", *cores)] if machine.l3 == "package" else cores
        packages.append(
            "".join(content)
            if machine.nameless
            else element("Package", *memory(machine.numa == "package"), *content, number=package)
        )
    # Without packages the NUMA node is in the machine itself.
    inside = memory(machine.numa == "machine" or machine.nameless)
    whole = [*inside, *packages]
    if machine.l3 == "machine":
        # hwloc puts the node as deep as the cache that holds as many CPUs.
        whole = [element("L3Cache", *whole)]
    return f'<topology version="2.0">{element("Machine", *whole)}</topology>'


def measure(root: pathlib.Path, machine: Machine, version: str | None = None) -> dict[str, Any]:
    """Return what slurm_hardware would say of a machine that has a version of Slurm."""
    return {
        "architecture": machine.architecture,
        **measure_machine(build(root, machine)),
        "hwloc": hwloc.counts(export(machine)) if machine.hwloc else None,
        "slurm": version,
    }
