#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Reboot a worker through Slurm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_reboot
short_description: Reboot a worker through Slurm
description:
  - Runs on the control node. The worker accepts no new jobs, reboots when its running jobs have ended, and is resumed.
  - A worker that an administrator drained also reboots, and is drained with the same reason afterwards. A drain that
    the health check or C(up) takes back stays theirs.
  - Has two steps, so that the operator sees which jobs are waited for. Both can be repeated; repeating the first one
    sends no second request to Slurm.
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
  before: {description: The value C(before) that C(asked) returned., type: dict, default: {}}
  deadline:
    description: Minutes to wait for its jobs to end. After that the reboot is cancelled; the worker stays in service.
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
said: {description: Description of what happens to the worker., type: str, returned: success}
before: {description: State of the worker before the reboot., type: dict, returned: C(asked)}
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
            module.exit_json(changed=False, said=f"would wait for {given['node']}")
        before = Before(**{**given["before"], "boot": float(given["before"].get("boot", 0))})
        module.exit_json(changed=True, said=reboot.wait(before, 60.0 * given["deadline"]))
    except RebootError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
