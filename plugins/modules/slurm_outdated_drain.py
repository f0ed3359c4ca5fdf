#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Withdraw the drain of a node that Slurm drained for what its slurmd has put right since."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_outdated_drain
short_description: Withdraw a drain of Slurm's own that slurmd has put right
description:
  - When a node is declared to have GRES, slurmctld of Slurm 22.05 drains it before its slurmd can have read so, and
    leaves it drained. After it was killed, slurmctld gives numbers of jobs again, and drains a node that still has a
    job of the same number (C(Duplicate jobid)).
  - Resumes the node if slurmd was started since, and no job is found on it that slurmctld does not have there. What is
    still wrong, Slurm finds it again and drains the node again.
  - Drains of people and of health checks stay.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  node: {type: str, required: true, description: Name of this node in Slurm.}
  timeout:
    type: int
    default: 60
    description: >-
      Seconds in which slurmd, which was just started, registers with slurmctld, and slurmctld ends the jobs that it
      does not know.
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Let the worker take jobs again
  slurm_outdated_drain:
    node: node1
"""

RETURN = r"""
reason: {description: The reason that Slurm had given., type: str, returned: changed}
unknown:
  description: Numbers of the jobs on the node that slurmctld does not have there.
  type: list
  elements: str
  returned: when the node stays drained after the timeout
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.change.workers import strays
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.workers.reasons import OUTDATED, drained_by_slurm


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"node": {"type": "str", "required": True}, "timeout": {"type": "int", "default": 60}},
        supports_check_mode=True,
    )
    slurm, until = Slurm(), time.monotonic() + module.params["timeout"]
    node = module.params["node"]
    while drained := drained_by_slurm(shown := slurm.nodes().get(node, {})):
        # In this order: a job that starts in between is known.
        present, state = slurm.present(), slurm.state()
        unknown = strays(present, state, node) if state.heard else []
        if drained == OUTDATED and state.heard and not unknown:
            break
        if time.monotonic() > until:
            if unknown:
                module.warn(f"{node} stays drained: slurmctld does not know the jobs {', '.join(unknown)} that it has")
            module.exit_json(changed=False, unknown=unknown)
        time.sleep(1)
    else:
        module.exit_json(changed=False)
    if not module.check_mode:
        slurm.update(node, "RESUME")
    module.exit_json(changed=True, reason=shown["Reason"])


if __name__ == "__main__":
    main()
