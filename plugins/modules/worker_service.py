#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Take workers out of service in Slurm, or bring them back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_service
short_description: Take workers out of service in Slurm, or bring them back
description:
  - Runs on the control node. To take a worker out, drains it and ends its jobs or waits for them. To bring it back,
    resumes it if it was drained for the same O(operation), and waits until it answers slurmctld.
  - A node that an administrator drained is neither changed nor resumed.
  - Resuming first and waiting in a second step shows the operator which workers are waited for.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  workers: {description: Names of the workers., type: list, elements: str, required: true}
  state:
    description: >-
      Wanted state. C(resumed) is C(in) without waiting; it reports which workers are not ready for jobs yet. C(asleep)
      resumes only those in power saving.
    type: str
    choices: [asleep, in, out, resumed]
    required: true
  operation:
    description: Operation that takes them out; its reason (workers/reasons.py) marks the drain.
    type: str
    choices: [move-share, remove-node, replace-node, shutdown]
    required: true
  jobs:
    description: >-
      What to do with their running jobs. C(refuse) fails and changes nothing, C(wait) waits until they end, C(cancel)
      cancels them. Pending jobs stay in the queue.
    type: str
    choices: [refuse, wait, cancel]
    default: refuse
  deadline: {description: Minutes to wait for the jobs to end or the workers to answer., type: int, default: 60}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Drain the worker and make sure no job runs on it
  worker_service:
    workers: [node1]
    state: out
    operation: remove-node
"""

RETURN = r"""
said: {description: Description of what was done., type: str, returned: success}
asleep: {description: The workers in power saving., type: list, elements: str, returned: C(asleep)}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.power.shutdown import answers_at
from ansible.module_utils.slurmstead.workers.drains import Remembering
from ansible.module_utils.slurmstead.workers.reasons import OPERATIONS
from ansible.module_utils.slurmstead.workers.service import Service, ServiceError

OPERATING = ["move-share", "remove-node", "replace-node", "shutdown"]
"""The operations that take workers out of service; the others of OPERATIONS drain them in another way."""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "workers": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["asleep", "in", "out", "resumed"], "required": True},
            "operation": {"type": "str", "choices": OPERATING, "required": True},
            "jobs": {"type": "str", "choices": ["refuse", "wait", "cancel"], "default": "refuse"},
            "deadline": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    given = module.params
    service = Service(given["workers"], OPERATIONS[given["operation"]], Remembering(), answers_at)
    deadline = 60.0 * given["deadline"]
    try:
        if given["state"] == "out":
            done = service.take_out(given["jobs"], deadline, module.check_mode)
        elif given["state"] == "resumed":
            done = service.resume(module.check_mode)
        elif given["state"] == "asleep":
            done = service.resume_asleep(module.check_mode)
        else:
            done = service.bring_back(deadline, module.check_mode)
    except ServiceError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=done.changed, said="\n".join(done.said), asleep=list(done.asleep))


if __name__ == "__main__":
    main()
