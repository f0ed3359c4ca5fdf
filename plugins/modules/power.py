#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Switch machines on and off, or ask whether they are on."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power
short_description: Switch machines on and off, or ask whether they are on
description:
  - Runs on the control node, which reaches the BMCs. C(off) cuts the supply of a machine whose system was shut down.
  - Never fails because of a machine, so that its task can hide the credentials; see RV(problems).
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  machines: {type: list, elements: dict, required: true, description: The fields of power.model.Machine, of each.}
  state: {type: str, choices: [status, "on", "off"], required: true, description: What to do.}
  force: {type: bool, default: false, description: Also cut the supply of a system that runs.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Switch a machine on
  power:
    machines: [{name: node1, method: wake_on_lan, mac: "52:54:00:00:00:01"}]
    state: "on"
  no_log: true
  diff: false
"""

RETURN = r"""
power: {description: C(on), C(off), C(unknown) or C(error) by machine., type: dict, returned: always}
problems: {description: What could not be done, a line for each machine., type: list, returned: always}
"""

import functools
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.power import switch, watch
from ansible.module_utils.slurmstead.power.model import OPTIONS, Machine


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "machines": {"type": "list", "elements": "dict", "required": True, "options": OPTIONS},
            "state": {"type": "str", "choices": ["status", "on", "off"], "required": True},
            "force": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    wanted = "status" if module.check_mode else str(module.params["state"])
    machines = [Machine.read(given) for given in module.params["machines"]]
    is_safe = wanted == "off" and not module.params["force"]
    act = switch.cut if is_safe else functools.partial(switch.switch, state=wanted)
    done: list[Any] = switch.together(machines, act)
    if not module.check_mode:
        working = {one.name for one in done if one.power in ("on", "off")}
        watch.accepted(machine for machine in machines if machine.name in working)
    module.exit_json(
        changed=any(one.changed for one in done),
        power={one.name: one.power for one in done},
        problems=[f"{one.name}: {one.problem}" for one in done if one.problem],
    )


if __name__ == "__main__":
    main()
