#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Measure what Slurm needs to know of a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_hardware
short_description: Measure what Slurm needs to know of a node
description:
  - Reads CPUs and memory of a node from C(/sys) and C(/proc). Its action half remembers them on the controller, in
    C(hardware/<node>.yml) beside the inventory, so that a node that is off keeps its place in the cluster.
  - Reports a change when what it remembers changes.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  directory:
    description: Where it is remembered on the controller; C(hardware) beside the inventory unless given.
    type: path
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Measure the worker
  slurm_hardware:
"""

RETURN = r"""
hardware:
  description: What was measured.
  type: dict
  returned: always
  contains:
    architecture: {description: Machine name of uname(2)., type: str}
    cpus: {description: CPUs that are online., type: int}
    sockets: {description: Packages with online CPUs., type: int}
    cores_per_socket: {description: Cores of a package; of the largest one where they differ., type: int}
    threads_per_core: {description: CPUs of a core; of the largest one where they differ., type: int}
    memory: {description: Memory that the kernel manages in MiB., type: int}
"""

import collections
import os
import pathlib
import re

from ansible.module_utils.basic import AnsibleModule

CPU_DIRECTORY = re.compile(r"cpu\d+")


def topology(root: pathlib.Path) -> tuple[int, int, int, int]:
    """Return CPUs, packages, cores of the largest package and CPUs of the largest core, of the CPUs that are online.

    Source: Documentation/ABI/stable/sysfs-devices-system-cpu of the kernel.
    """
    threads: dict[tuple[str, str], int] = collections.Counter()
    for cpu in root.iterdir():
        if not CPU_DIRECTORY.fullmatch(cpu.name):
            continue
        try:
            package = (cpu / "topology/physical_package_id").read_text().strip()
            core = (cpu / "topology/core_cpus_list").read_text().strip()
        except FileNotFoundError:
            continue  # an offline CPU has no topology
        threads[package, core] += 1
    cores = collections.Counter(package for package, _ in threads)
    return sum(threads.values()), len(cores), max(cores.values()), max(threads.values())


def memory_mib(meminfo: str) -> int:
    """Return MemTotal of proc(5)'s meminfo in MiB, rounded down.

    >>> memory_mib("MemTotal:        8127932 kB\\n")
    7937
    """
    match = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    if match is None:
        raise ValueError("/proc/meminfo has no MemTotal")
    return int(match[1]) // 1024


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"directory": {"type": "path"}}, supports_check_mode=True)
    cpus, sockets, cores, threads = topology(pathlib.Path("/sys/devices/system/cpu"))
    hardware = {
        "architecture": os.uname().machine,
        "cpus": cpus,
        "sockets": sockets,
        "cores_per_socket": cores,
        "threads_per_core": threads,
        "memory": memory_mib(pathlib.Path("/proc/meminfo").read_text()),
    }
    module.exit_json(changed=False, hardware=hardware)


if __name__ == "__main__":
    main()
