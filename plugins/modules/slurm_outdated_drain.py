#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Resume a node that Slurm drained for a reason that a restart of slurmd has fixed."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_outdated_drain
short_description: Resume a node that Slurm drained for a reason that a restart of slurmd has fixed
description:
  - When a node gets GRES in the configuration, slurmctld 22.05 drains it before its slurmd can have read the new
    configuration, and leaves it drained. After a kill, slurmctld reuses job numbers, and drains a node that still has a
    job with the same number (C(Duplicate jobid)).
  - Resumes the node if slurmd was started since, and slurmctld knows all jobs on it. If the fault persists, Slurm
    drains the node again.
  - Drains by administrators and health checks stay.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  node: {type: str, required: true, description: Name of this node in Slurm.}
  timeout:
    type: int
    default: 60
    description: >-
      Seconds for the restarted slurmd to register with slurmctld, and for slurmctld to end unknown jobs.
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Let the worker take jobs again
  slurm_outdated_drain:
    node: node1
"""

RETURN = r"""
reason: {description: Slurm's reason for the drain., type: str, returned: changed}
unknown:
  description: Numbers of the jobs on the node that slurmctld does not know there.
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
        # In this order, so that slurmctld knows a job that starts in between.
        present, state = slurm.present(), slurm.state()
        unknown = strays(present, state, node) if state.heard else []
        if drained == OUTDATED and state.heard and not unknown:
            break
        if time.monotonic() > until:
            if unknown:
                module.warn(f"{node} stays drained: slurmctld does not know its jobs {', '.join(unknown)}")
            module.exit_json(changed=False, unknown=unknown)
        time.sleep(1)
    else:
        module.exit_json(changed=False)
    if not module.check_mode and slurm.resume({node: shown}):
        module.exit_json(changed=False)
    module.exit_json(changed=True, reason=shown["Reason"])


if __name__ == "__main__":
    main()
