#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Keep new jobs from a worker for a while."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_pause
short_description: Keep new jobs from a worker for a while
description:
  - Runs on the control node. Running jobs continue. A worker that an administrator drained stays drained, with its
    reason. A worker that its health check drained is drained for the pause, and gets the old reason back.
  - C(ended) waits until slurmctld answers and the worker has registered, and fails if a job was lost meanwhile.
  - For a machine that is not a worker, only checks slurmctld and all of its jobs.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  node: {description: Name of the worker., type: str, required: true}
  state: {description: What to do., type: str, choices: [begun, ended], required: true}
  before: {description: The value C(before) that C(begun) returned., type: dict, default: {}}
  restarted: {description: Whether slurmd was restarted meanwhile., type: bool, default: false}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Keep new jobs away
  worker_pause:
    node: node1
    state: begun
  register: paused

- name: Let it accept jobs again
  worker_pause:
    node: node1
    state: ended
    before: "{{ paused.before }}"
"""

RETURN = r"""
before: {description: State of the worker before the pause., type: dict, returned: C(begun)}
"""

import dataclasses
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.jobs import Job
from ansible.module_utils.slurmstead.workers.pause import Before, PauseError, Worker


def remembered(given: dict[str, Any]) -> Before:
    """Return the value that `begun` returned, converted back from Ansible's types."""
    jobs = tuple(Job(**{**job, "nodes": tuple(job["nodes"])}) for job in given.get("jobs", []))
    return Before(**{**given, "jobs": jobs})


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["begun", "ended"], "required": True},
            "before": {"type": "dict", "default": {}},
            "restarted": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    given = module.params
    worker = Worker(given["node"], Slurm())
    try:
        if given["state"] == "begun":
            changed, before = worker.pause(module.check_mode)
            module.exit_json(changed=changed, before=dataclasses.asdict(before))
        if module.check_mode:
            module.exit_json(changed=False)
        module.exit_json(changed=worker.give_back(remembered(given["before"]), given["restarted"]))
    except PauseError as error:
        module.fail_json(msg=f"{given['node']}: {error}")


if __name__ == "__main__":
    main()
