#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Read what was done to the machines that sleep, and what that saved."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power_journal
short_description: Read what was done to the machines that sleep, and what that saved
description: Reads the log that power saving writes on the control node. Changes nothing.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  path: {type: path, default: /var/log/slurmstead/power.log, description: The log; rotated ones are beside it.}
  days: {type: float, required: true, description: How far back to read.}
  nodes: {type: list, elements: str, default: [], description: Names of machines; without names, all.}
  watts: {type: dict, default: {}, description: Watts that a machine draws when it is idle, by its name.}
  price: {type: float, default: 0, description: Price of a kilowatt-hour; 0 is unknown.}
  watched: {type: list, elements: str, default: [], description: The machines that may sleep now.}
  newest: {type: int, default: 10000, description: Maximum number of events that are returned.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Read what was done in a week
  power_journal:
    days: 7
"""

RETURN = r"""
exists: {description: Whether there is a log., type: bool, returned: always}
events: {description: The newest events, the oldest of them first., type: list, elements: dict, returned: always}
left_out: {description: Number of older events that are not in RV(events)., type: int, returned: always}
savings: {description: "Hours, sleeps, kWh and money by machine.", type: list, elements: dict, returned: always}
"""

import dataclasses
import pathlib
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.power import journal
from ansible.module_utils.slurmstead.power.savings import savings


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/var/log/slurmstead/power.log"},
            "days": {"type": "float", "required": True},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "watts": {"type": "dict", "default": {}},
            "price": {"type": "float", "default": 0},
            "watched": {"type": "list", "elements": "str", "default": []},
            "newest": {"type": "int", "default": 10000},
        },
        supports_check_mode=True,
    )
    given, now = module.params, time.time()
    start = now - given["days"] * 86400
    try:
        entries = [
            one for one in journal.read(pathlib.Path(given["path"])) if one.node in (given["nodes"] or [one.node])
        ]
    except OSError as error:
        module.fail_json(msg=f"the log cannot be read: {error}")
    watts = {name: float(value) for name, value in given["watts"].items()}
    saved = savings(entries, watts, given["price"], (start, now), given["watched"])
    recent = [dataclasses.asdict(one) for one in entries if one.at >= start]
    module.exit_json(
        changed=False,
        exists=pathlib.Path(given["path"]).exists(),
        events=recent[-given["newest"] :],
        left_out=max(0, len(recent) - given["newest"]),
        savings=[dataclasses.asdict(one) for one in saved],
    )


if __name__ == "__main__":
    main()
