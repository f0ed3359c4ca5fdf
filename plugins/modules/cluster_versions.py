#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Ask slurmctld for the Slurm versions of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_versions
short_description: Ask slurmctld for the Slurm versions of a cluster
description:
  - Runs on the control node, and changes nothing. If slurmctld has just been started, waits until it answers.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options: {}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Ask slurmctld for the versions of the cluster
  cluster_versions:
  register: cluster
"""

RETURN = r"""
controller: {description: Version of the running slurmctld., type: str, returned: always}
nodes: {description: 'Versions of the workers when they last registered, by name.', type: dict, returned: always}
paused: {description: Workers that an upgrade keeps from new jobs., type: list, elements: str, returned: always}
problems: {description: Problems to fix first., type: list, elements: str, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach.deadline import wait_while
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.workers.pause import paused

SECONDS = 30.0
"""Timeout for slurmctld's answer."""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    slurm = Slurm()
    wait_while(lambda: not slurm.answers(), SECONDS, 1)
    nodes = slurm.nodes()
    version = slurm.setting("SLURM_VERSION") if nodes else ""
    module.exit_json(
        changed=False,
        controller=version,
        nodes={name: shown["Version"] for name, shown in nodes.items() if shown.get("Version")},
        paused=paused(nodes),
        problems=[] if version else ["slurmctld does not answer: `stead doctor` says why, `stead up` starts it"],
    )


if __name__ == "__main__":
    main()
