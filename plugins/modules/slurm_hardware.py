#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Measure what Slurm needs to know of a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_hardware
short_description: Measure what Slurm needs to know of a node
description:
  - Reads CPUs, memory, disks and versions of a node, and never writes there. What cannot be found is null or empty.
  - Its action half remembers on the controller what stays the same between boots, in C(hardware/<node>.yml) beside the
    inventory, so that a node that is off keeps its place in the cluster. In check mode it remembers nothing.
  - Reports a change when what it remembers changes, and warns when a node has become smaller.
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
    clusters: {description: Clusters of CPUs as the kernel names them; null if it does not., type: int}
    cores: {description: Cores with online CPUs., type: int}
    cores_per_socket: {description: Cores of a package; of the largest one where they differ., type: int}
    threads_per_core: {description: CPUs of a core; of the largest one where they differ., type: int}
    numa_nodes: {description: NUMA nodes; null if the kernel knows none., type: int}
    hwloc:
      description: What hwloc sees, with which slurmd counts; null without its library.
      type: dict
      contains:
        packages: {description: Number of packages., type: int}
        groups: {description: Number of groups., type: int}
        l3_caches: {description: Number of L3 caches., type: int}
        l3_cores: {description: Number of cores below an L3 cache., type: int}
        numa_nodes: {description: Number of NUMA nodes., type: int}
        numa_parent: {description: What the first NUMA node is in; C(numa_node_as_socket) makes it a socket., type: str}
        cores: {description: Number of cores., type: int}
        pus: {description: Number of CPUs., type: int}
    cpu_capacity: {description: Capacity by list of CPUs; empty if the kernel gives none., type: dict}
    core_types: {description: 'List of CPUs by type of core on Intel, C(core) (fast) and C(atom).', type: dict}
    fast_cores: {description: Number of fast cores; 0 where all are alike., type: int}
    slow_cores: {description: Number of slow cores; 0 where all are alike., type: int}
    slow_cpus: {description: 'List of the CPUs of slow cores, such as C(0-3); empty where all are alike.', type: str}
    offline_cpus: {description: 'List of CPUs that are switched off, such as C(2-3).', type: str}
    isolated_cpus: {description: List of CPUs that the kernel keeps free of tasks., type: str}
    memory: {description: Memory that the kernel manages in MiB., type: int}
    board: {description: Name of the board in the device tree; null without one., type: str}
    compatible: {description: 'Names in the device tree, from the board to its chip.', type: list}
    cgroup:
      description: Control groups.
      type: dict
      contains:
        mode: {description: 'C(v1), C(v2) or C(hybrid).', type: str}
        controllers: {description: Controllers that can be used., type: list}
    disks:
      description: Disks of the machine.
      type: list
      elements: dict
      contains:
        name: {description: Name of the kernel; it can be another after the next boot., type: str}
        id: {description: Its first name in /dev/disk/by-id., type: str}
        size: {description: Size in bytes., type: int}
        model: {description: Model., type: str}
    slurm: {description: Version of slurmd; null if it is not installed., type: str}
    slurmd: {description: 'Numbers that C(slurmd -C) prints; memory in MiB.', type: dict}
    munge: {description: Version of munge; null if it is not installed., type: str}
"""

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.conf.versions import upstream
from ansible.module_utils.slurmstead.hardware import hwloc, measure


def output(module: AnsibleModule, program: str, option: str) -> str:
    """Return what a program prints to standard output; empty if it is not installed or fails."""
    path = module.get_bin_path(program)
    if path is None:
        return ""
    code, stdout, _ = module.run_command([path, option])
    return stdout if code == 0 else ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"directory": {"type": "path"}}, supports_check_mode=True)
    module.run_command_environ_update = {"LC_ALL": "C", "LANGUAGE": "C"}
    measured = {
        "architecture": os.uname().machine,
        **measure.measure(Path("/")),
        "hwloc": hwloc.look(),
        "slurm": upstream(output(module, "slurmd", "-V")) or None,
        # Complaints about the arrangement go to standard error, in the middle of a line.
        "slurmd": measure.slurmd_says(output(module, "slurmd", "-C")),
        "munge": upstream(output(module, "munge", "--version")) or None,
    }
    module.exit_json(changed=False, hardware=measured)


if __name__ == "__main__":
    main()
