#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Bring a configuration to a Slurm cluster, or leave everything as it was."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_config
short_description: Bring a configuration to a Slurm cluster, or leave everything as it was
description:
  - Runs on the control node. Checks the files, has the installed slurmctld load them in namespaces of its own on a copy
    of the live state, and compares them with what the daemons have.
  - Then publishes them all at once, restarts slurmctld or makes it reread them, as the changes require, and proves
    that it answers with all nodes and jobs. Otherwise the last good set is back within 30 seconds, or, where the gate
    was slow, in ten times as long as that took.
  - A change that would hurt jobs is refused with their numbers.
  - A run that was ended before the proof is finished by the next. One that finds nothing to do costs four questions to
    slurmctld.
  - Where slurmctld has loaded something else than the files that are in force, it is restarted.
  - Before Slurm 23.11, where jobs run and no partition is closed, the first one after a start of slurmctld has it read
    its files once more, so that the workers say which jobs they have. What ended just before slurmctld was killed it
    takes for running otherwise.
  - Check mode does all that comes before publishing.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  files:
    description: >-
      Text by name of each file in O(directory); C(slurm.conf) must be one. A file without text is not to be there,
      unless an administrator closed it.
    type: dict
    required: true
  directory: {type: path, default: /etc/slurm, description: Where Slurm looks for its files.}
  when_idle:
    description: >-
      Whether to wait for the jobs that stand against a change, and not to refuse it. Nodes that it concerns take no new
      jobs meanwhile. After a day it is refused.
    type: bool
    default: false
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Publish the configuration of the cluster
  slurm_config:
    files:
      slurm.conf: "{{ lookup('ansible.builtin.template', 'slurm.conf.j2') }}"
      cgroup.conf: "{{ lookup('ansible.builtin.template', 'cgroup.conf.j2') }}"
  register: configuration
"""

RETURN = r"""
plan: {description: A line for each difference with what it takes, type: list, elements: str, returned: success}
restart_slurmd:
  description: Workers whose slurmd has to be restarted, and was not since. Also those of earlier runs.
  type: list
  elements: str
  returned: success
gate_seconds: {description: How long slurmctld took to load the files., type: float, returned: success}
"""

import difflib
import pathlib
from collections.abc import Mapping

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.change.change import FailedError, RefusedError, Run
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.slurm.daemons import Slurm, Systemd


def diff(before: Mapping[str, str], files: Mapping[str, str], directory: str) -> list[dict[str, str]]:
    """Return the differences as Ansible shows them."""
    shown = []
    for name, new in sorted(files.items()):
        path, old = f"{directory}/{name}", before.get(name, "")
        if new and old != new:
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
            shown.append({"prepared": "\n".join(lines)})
    return shown


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "required": True},
            "directory": {"type": "path", "default": "/etc/slurm"},
            "when_idle": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    files, directory = module.params["files"], module.params["directory"]
    if not files.get("slurm.conf"):
        module.fail_json(msg="expected files to hold slurm.conf; add it")
    store = Store(pathlib.Path(directory))
    before = store.seen()
    service = Systemd(conf_model.read(files["slurm.conf"]).value("SlurmctldLogFile"))
    try:
        outcome = Run(files, store, service, Slurm()).go(module.check_mode, module.params["when_idle"])
    except RefusedError as error:
        module.fail_json(msg=f"Nothing was changed:\n{error}", diff=diff(before, files, directory))
    except FailedError as error:
        module.fail_json(msg=str(error), diff=diff(before, files, directory))
    except OSError as error:
        module.fail_json(msg=f"cannot bring the configuration into {directory}: {error}")
    for warning in outcome.warnings:
        module.warn(warning)
    shown = [*diff(before, files, directory), {"prepared": "\n".join(outcome.plan)}] if outcome.changed else []
    module.exit_json(
        changed=outcome.changed,
        plan=outcome.plan,
        restart_slurmd=outcome.restart_slurmd,
        gate_seconds=round(outcome.gate_seconds, 1),
        diff=shown,
    )


if __name__ == "__main__":
    main()
