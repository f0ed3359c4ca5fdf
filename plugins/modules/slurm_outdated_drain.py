#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Withdraw the drain of a node that Slurm drained before its slurmd knew of new GRES."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_outdated_drain
short_description: Withdraw a drain for GRES that slurmd did not know of
description:
  - When a node is declared to have GRES, slurmctld of Slurm 22.05 drains it before its slurmd can have read so, and
    leaves it drained.
  - Resumes the node if slurmd was started since. What it really lacks Slurm finds again, and drains it anew.
  - Drains of people and of health checks stay.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  node: {type: str, required: true, description: Name of this node in Slurm.}
  timeout:
    type: int
    default: 60
    description: Seconds in which slurmd, which was just started, registers with slurmctld.
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Let the worker take jobs again
  slurm_outdated_drain:
    node: node1
"""

RETURN = r"""
reason: {description: The reason that Slurm had given., type: str, returned: changed}
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.slurm_daemons import Slurm
from ansible.module_utils.slurmstead.slurm_workers import CURRENT, OUTDATED, drained_for_gres


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"node": {"type": "str", "required": True}, "timeout": {"type": "int", "default": 60}},
        supports_check_mode=True,
    )
    slurm, until = Slurm(), time.monotonic() + module.params["timeout"]
    node = module.params["node"]
    while (drained := drained_for_gres(shown := slurm.nodes().get(node, {}))) == CURRENT and time.monotonic() < until:
        time.sleep(1)
    if drained != OUTDATED:
        module.exit_json(changed=False)
    if not module.check_mode:
        slurm.update(node, "RESUME")
    module.exit_json(changed=True, reason=shown["Reason"])


if __name__ == "__main__":
    main()
