#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Take workers out of Slurm's service, or bring them back into it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_service
short_description: Take workers out of Slurm's service, or bring them back into it
description:
  - Runs on the control node. A worker that is taken out is drained, and its jobs end. One that is
    brought back is resumed if it was drained for the same O(operation), and answers slurmctld.
  - A node that an administrator drained is neither changed nor resumed.
  - To resume them first and wait in a second step lets a person read what is waited for.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  workers: {description: Names of the workers., type: list, elements: str, required: true}
  state:
    description: Where they are to be. C(resumed) is C(in) without waiting; it says which are not fit for jobs yet.
    type: str
    choices: [in, out, resumed]
    required: true
  operation:
    description: What takes them out. Its reason (workers/reasons.py) tells this drain from others.
    type: str
    choices: [remove-node, replace-node, shutdown]
    required: true
  jobs:
    description: >-
      What becomes of jobs that are on them. C(refuse) fails and changes nothing, C(wait) lets them end, C(cancel) ends
      them. What waits in the queue stays there.
    type: str
    choices: [refuse, wait, cancel]
    default: refuse
  deadline: {description: Minutes to wait for jobs or workers; then all is as it was., type: int, default: 60}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Let no job run on the worker
  worker_service:
    workers: [node1]
    state: out
    operation: remove-node
"""

RETURN = r"""
said: {description: What was done in words., type: str, returned: success}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.workers.reasons import OPERATIONS
from ansible.module_utils.slurmstead.workers.service import Service, ServiceError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "workers": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["in", "out", "resumed"], "required": True},
            "operation": {"type": "str", "choices": ["remove-node", "replace-node", "shutdown"], "required": True},
            "jobs": {"type": "str", "choices": ["refuse", "wait", "cancel"], "default": "refuse"},
            "deadline": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    given = module.params
    service = Service(given["workers"], OPERATIONS[given["operation"]], Slurm())
    deadline = 60.0 * given["deadline"]
    try:
        if given["state"] == "out":
            done = service.take_out(given["jobs"], deadline, module.check_mode)
        elif given["state"] == "resumed":
            done = service.resume(module.check_mode)
        else:
            done = service.bring_back(deadline, module.check_mode)
    except ServiceError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=done.changed, said="\n".join(done.said))


if __name__ == "__main__":
    main()
