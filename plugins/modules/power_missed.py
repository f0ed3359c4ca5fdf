#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Wake the machines that sleep, or remember what they miss."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power_missed
short_description: Wake the machines that sleep, or remember what they miss
description:
  - Runs on the control node. C(begin) wakes the workers that sleep, or drains them with a reason that names the
    O(operation), so that they get no job before it was done on them. It waits for machines that Slurm wakes already.
  - C(done) lets them take jobs again, unless they also slept during another operation.
    C(shown) only returns what they miss.
  - A node that an administrator drained is neither changed nor resumed.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  workers: {description: Names of the workers., type: list, elements: str, required: true}
  operation: {description: Name of the command., type: str, default: ''}
  state: {description: What to do., type: str, choices: [begin, done, shown], required: true}
  wake: {description: Whether they are woken., type: bool, default: false}
  deadline: {description: Seconds that a machine may take to boot., type: int, default: 600}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Wake the machines that sleep
  power_missed:
    workers: [node1, node2]
    operation: up
    state: begin
    wake: true
"""

RETURN = r"""
asleep: {description: Workers that sleep., type: list, elements: str, returned: always}
noted: {description: Whether those get no jobs until it is done there., type: bool, returned: always}
missed: {description: Commands that workers missed., type: dict, returned: always}
said: {description: Description of what was done., type: str, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.power.missed import Sleepers
from ansible.module_utils.slurmstead.workers.drains import Remembering


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "workers": {"type": "list", "elements": "str", "required": True},
            "operation": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["begin", "done", "shown"], "required": True},
            "wake": {"type": "bool", "default": False},
            "deadline": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    given = module.params
    sleepers = Sleepers(given["workers"], given["operation"], Remembering())
    if given["state"] == "begin":
        found = sleepers.begin(given["wake"], given["deadline"], module.check_mode)
    elif given["state"] == "done":
        found = sleepers.done(module.check_mode)
    else:
        found = sleepers.show()
    module.exit_json(
        changed=found.changed,
        asleep=list(found.asleep),
        noted=found.noted,
        missed=dict(found.missed),
        said="\n".join(found.said),
    )


if __name__ == "__main__":
    main()
