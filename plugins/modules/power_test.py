#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Prove that a machine can be switched off and on."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power_test
short_description: Prove that a machine can be switched off and on
description:
  - Runs on the control node. C(ready) only looks. C(down) shuts the system down as power saving does, if control can.
    C(up) cuts the supply of a machine that has shut down, sees that it stays silent and no other machine is, and
    switches it on until its slurmd is ready for jobs. With a BMC, it then does all of this once more, because only now
    it is certain whose BMC that is.
  - Never fails because of the machine, so that its task can hide the credentials; see RV(problem).
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  machine: {type: dict, required: true, description: The fields of power.model.Machine.}
  state: {type: str, choices: [ready, down, up], required: true, description: What to do.}
  started: {type: str, default: '', description: What C(ready) returned.}
  others: {type: dict, default: {}, description: Addresses of the other machines by name.}
  deadline: {type: int, default: 900, description: Seconds that the machine may take to be ready for jobs.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Shut the machine down
  power_test:
    machine: {name: node1, method: wake_on_lan, mac: "52:54:00:00:00:01", host: 192.0.2.1}
    state: down
  no_log: true
"""

RETURN = r"""
problem: {description: What does not work; empty if it works., type: str, returned: always}
started: {description: When slurmd started., type: str, returned: C(ready)}
supply: {description: Whether the device says that it is on; null if it cannot tell., type: bool, returned: C(ready)}
off: {description: How long the shutdown by its BMC took; null if it has none., type: float, returned: C(up)}
seconds: {description: How long it took; null if control must not do it., type: float, returned: C(down) and C(up)}
"""


from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.power import proof
from ansible.module_utils.slurmstead.power.model import OPTIONS, Machine, PowerError
from ansible.module_utils.slurmstead.slurm.daemons import Slurm


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "machine": {"type": "dict", "required": True, "options": OPTIONS},
            "state": {"type": "str", "choices": ["ready", "down", "up"], "required": True},
            "started": {"type": "str", "default": ""},
            "others": {"type": "dict", "default": {}},
            "deadline": {"type": "int", "default": 900},
        },
        supports_check_mode=True,
    )
    given, nodes = module.params, Slurm().nodes
    machine = Machine.read(given["machine"])
    if module.check_mode and given["state"] != "ready":
        module.exit_json(changed=True, problem="", off=None, seconds=0.0)
    try:
        if given["state"] == "ready":
            started, supply = proof.check(machine, nodes)
            module.exit_json(changed=False, problem="", started=started, supply=supply)
        if given["state"] == "down":
            module.exit_json(changed=True, problem="", seconds=proof.down(machine))
        off, taken = proof.up(machine, given["started"], given["others"], nodes, given["deadline"])
        module.exit_json(changed=True, problem="", off=off, seconds=taken)
    except PowerError as error:
        module.exit_json(changed=given["state"] != "ready", problem=f"{machine.name}: {error}")


if __name__ == "__main__":
    main()
