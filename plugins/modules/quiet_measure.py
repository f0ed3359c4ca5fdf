#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Compare quiet nodes by a fixed benchmark."""

from __future__ import annotations

DOCUMENTATION = r"""
module: quiet_measure
short_description: Compare quiet nodes by a fixed benchmark
description:
  - Runs on the control node as an ordinary user, and submits a job for each node to the partition C(quiet).
  - A node that does not match does not fail the task; the caller must evaluate C(ok).
  - Changes nothing, so it does the same in check mode.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  nodes: {type: list, elements: str, required: true, description: Names of the quiet nodes.}
  times: {type: int, default: 20, description: How often the benchmark is run on each node.}
  deadline: {type: int, default: 300, description: Seconds after which jobs that have not ended are cancelled.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Compare the quiet nodes
  quiet_measure:
    nodes: [node4, node5]
  become: true
  become_user: alice
  register: measured
"""

RETURN = r"""
ok: {description: Whether all nodes were measured and match., type: bool, returned: always}
lines: {description: The report., type: list, elements: str, returned: always}
answers: {description: 'Hardware and seconds of each run, by node.', type: dict, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.quiet import benchmark, spread


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "times": {"type": "int", "default": 20},
            "deadline": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    nodes, times, deadline = (module.params[name] for name in ("nodes", "times", "deadline"))
    found = benchmark.measure(nodes, times, deadline)
    lines, ok = spread.report(found["answers"], found["problems"])
    module.exit_json(changed=False, ok=ok, lines=lines, answers=found["answers"])


if __name__ == "__main__":
    main()
