#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Reboot a worker through Slurm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_reboot
short_description: Reboot a worker through Slurm
description:
  - Runs on the control node. The worker takes no new jobs, reboots when those that it has have ended, and is resumed.
  - A worker that an administrator drained also reboots, and is drained with the same reason afterwards.
  - In two steps, so that a person reads what is waited for. Both can be repeated, and the first asks Slurm once only.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  node: {description: Name of the worker., type: str, required: true}
  state:
    description: C(asked) asks Slurm for the reboot; C(back) waits until the worker is back.
    type: str
    choices: [asked, back]
    required: true
  before: {description: What C(asked) returned., type: dict, default: {}}
  deadline:
    description: Minutes that its jobs may take to end. Then the reboot is withdrawn, and the worker works on.
    type: int
    default: 60
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Ask Slurm for the reboot
  worker_reboot:
    node: node1
    state: asked
  register: asked

- name: Wait until the worker is back
  worker_reboot:
    node: node1
    state: back
    before: "{{ asked.before }}"
"""

RETURN = r"""
said: {description: What happens to the worker, in words., type: str, returned: success}
before: {description: What the worker was before., type: dict, returned: C(asked)}
"""

import dataclasses

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.workers.reboot import Before, Reboot, RebootError


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["asked", "back"], "required": True},
            "before": {"type": "dict", "default": {}},
            "deadline": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    given = module.params
    reboot = Reboot(given["node"], Slurm())
    try:
        if given["state"] == "asked":
            changed, before, said = reboot.ask(module.check_mode)
            module.exit_json(changed=changed, before=dataclasses.asdict(before), said=said)
        if module.check_mode:
            module.exit_json(changed=False, said=f"{given['node']} would be waited for")
        before = Before(float(given["before"].get("boot", 0)), given["before"].get("drained"))
        module.exit_json(changed=True, said=reboot.wait(before, 60.0 * given["deadline"]))
    except RebootError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
