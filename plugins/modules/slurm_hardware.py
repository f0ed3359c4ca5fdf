#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Measure the hardware that Slurm needs to know of a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_hardware
short_description: Measure the hardware that Slurm needs to know of a node
description:
  - Reads CPUs, memory, disks and versions of a node, and never writes there. Unknown values are null or empty.
  - Its action plugin records on the controller the values that do not change between boots, in C(hardware/<node>.yml)
    beside the inventory, so that a node that is off stays in the configuration. In check mode it records nothing.
  - While a job is alone on a quiet node, which can switch CPUs off, an existing record is kept.
  - Reports a change if the record changes, and warns if a node has become smaller.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  directory:
    description: Directory of the records on the controller; C(hardware) beside the inventory unless given.
    type: path
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Measure the worker
  slurm_hardware:
"""

RETURN = r"""
temporary: {description: Whether a job is alone on the node., type: bool, returned: always}
hardware:
  description: What was measured.
  type: dict
  returned: always
  contains:
    architecture: {description: Machine name of uname(2)., type: str}
    cpus: {description: CPUs that are online., type: int}
    sockets: {description: Packages with online CPUs., type: int}
    clusters: {description: Clusters of CPUs as reported by the kernel; null if it reports none., type: int}
    cores: {description: Cores with online CPUs., type: int}
    cores_per_socket: {description: Cores of a package; of the largest one if they differ., type: int}
    threads_per_core: {description: CPUs of a core; of the largest one if they differ., type: int}
    numa_nodes: {description: NUMA nodes; null if the kernel reports none., type: int}
    hwloc:
      description: Topology as reported by hwloc, which slurmd uses; null without its library.
      type: dict
      contains:
        packages: {description: Number of packages., type: int}
        groups: {description: Number of groups., type: int}
        l3_caches: {description: Number of L3 caches., type: int}
        l3_cores: {description: Number of cores below an L3 cache., type: int}
        numa_nodes: {description: Number of NUMA nodes., type: int}
        numa_parent: {description: Parent of the first NUMA node; C(numa_node_as_socket) makes it a socket., type: str}
        cores: {description: Number of cores., type: int}
        pus: {description: Number of CPUs., type: int}
    cpu_capacity: {description: Capacity by list of CPUs; empty if the kernel gives none., type: dict}
    core_types: {description: 'List of CPUs by type of core on Intel, C(core) (fast) and C(atom).', type: dict}
    fast_cores: {description: Number of fast cores; 0 if all are alike., type: int}
    slow_cores: {description: Number of slow cores; 0 if all are alike., type: int}
    slow_cpus: {description: 'List of the CPUs of slow cores, such as C(0-3); empty if all are alike.', type: str}
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
        name: {description: Kernel name; it can change at the next boot., type: str}
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
    """Return a program's standard output; empty if it is not installed or fails."""
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
        # slurmd prints warnings about the topology to standard error, in the middle of a line.
        "slurmd": measure.slurmd_says(output(module, "slurmd", "-C")),
        "munge": upstream(output(module, "munge", "--version")) or None,
    }
    module.exit_json(changed=False, hardware=measured, temporary=measure.QUIET.exists())


if __name__ == "__main__":
    main()
