#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Check that this computer has enough memory and disk space for a lab, before anything is built."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_room
short_description: Check that this computer has enough memory and disk space for a lab
description:
  - Fails, with both figures, if memory or disk space is too small for the machines that do not run yet.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  directory: {type: path, required: true, description: Directory of the lab.}
  image_cache: {type: path, required: true, description: Directory of the built images.}
  memory: {type: dict, required: true, description: 'Memory in MiB of each machine, by name.'}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Check the available memory and disk space
  lab_room:
    directory: /home/me/.local/state/slurmstead/lab/default
    image_cache: /home/me/.cache/slurmstead/images
    memory: {node1: 1024, node2: 1024}
"""

RETURN = r"""
missing: {description: Names of the machines that do not exist yet., type: list, elements: str, returned: success}
"""

import pathlib
import re
import shutil

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.lab.steps import process_of

DISK_OF_MACHINE = 1536
"""MiB that a machine's overlay and extra disks take once the cluster is configured (measured: 0.9 to 1.3 GiB)."""

DISK_OF_IMAGES = 3072
"""MiB for the two images of a lab while they are built (measured: 0.5 to 0.7 GiB each, plus their trees)."""


def available_memory(meminfo: str) -> int:
    """Return MemAvailable of proc(5)'s meminfo in MiB.

    >>> available_memory("MemFree: 1 kB\\nMemAvailable:  2097152 kB\\n")
    2048
    """
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match[1]) // 1024 if match else 0


def free_disk(path: pathlib.Path) -> int:
    """Return the free space in MiB where a directory is or will be."""
    existing = next(parent for parent in [path, *path.parents] if parent.exists())
    return shutil.disk_usage(existing).free >> 20


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "image_cache": {"type": "path", "required": True},
            "memory": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    directory = pathlib.Path(module.params["directory"])
    sizes = module.params["memory"]
    missing = [name for name in sizes if not (directory / name / "pid").exists()]
    off = [int(size) for name, size in sizes.items() if process_of(directory / name / "pid") is None]
    problems = []
    memory = available_memory(pathlib.Path("/proc/meminfo").read_text())
    if memory < sum(off):
        problems.append(
            f"memory: {len(off)} machines need {sum(off)} MiB, {memory} MiB are available; stop "
            "other programs, lower lab_memory, or remove hosts from the inventory"
        )
    for what, path, needed in (
        ("images", pathlib.Path(module.params["image_cache"]), DISK_OF_IMAGES),
        ("machines", directory, DISK_OF_MACHINE * len(missing)),
    ):
        free = free_disk(path)
        if missing and free < needed:
            problems.append(f"disk: {what} need {needed} MiB at {path}, {free} MiB are free; free some space")
    if problems:
        module.fail_json(msg="This computer is too small for the lab. " + "; ".join(problems))
    module.exit_json(changed=False, missing=sorted(missing))


if __name__ == "__main__":
    main()
