#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Apply a configuration to a Slurm cluster, or roll back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_config
short_description: Apply a configuration to a Slurm cluster, or roll back
description:
  - Runs on the control node. Checks the files, lets the installed slurmctld load them in separate namespaces on a copy
    of the live state, and compares them with the configuration that the daemons use.
  - Then publishes all files atomically, restarts slurmctld or makes it reread them, as the changes require, and checks
    that it answers with all nodes and jobs. If not, rolls back to the last good set within 30 seconds or, if the gate
    was slow, within ten times the gate's duration.
  - Refuses a change that would harm jobs, and names the jobs.
  - The next run completes an interrupted one. A run without changes costs four requests to slurmctld.
  - Restarts slurmctld if it has not loaded the active files.
  - Before Slurm 23.11, if jobs run and no partition is closed, the first run after a start of slurmctld makes it reread
    its files, so that the workers report their jobs. Otherwise slurmctld would consider jobs running that ended just
    before it was killed.
  - Check mode runs every step before publishing.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  files:
    description: >-
      Text by name of each file in O(directory); C(slurm.conf) is required. A file with an empty text is removed, unless
      it is an administrator's own.
    type: dict
    required: true
  directory: {type: path, default: /etc/slurm, description: Slurm's configuration directory.}
  when_idle:
    description: >-
      Whether to wait for the jobs that block a change instead of refusing it. Meanwhile the affected nodes accept no
      new jobs; after a day the change is refused.
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
plan: {description: A line for each difference with the required action, type: list, elements: str, returned: success}
restart_slurmd:
  description: Workers whose slurmd still needs a restart, also because of earlier runs.
  type: list
  elements: str
  returned: success
gate_seconds: {description: How long slurmctld took to load the files., type: float, returned: success}
"""

import os
import pathlib
from collections.abc import Mapping

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.change.change import FailedError, RefusedError, Run
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.reach import difference
from ansible.module_utils.slurmstead.slurm.daemons import Slurm, Systemd


def diff(before: Mapping[str, str], files: Mapping[str, str], directory: str) -> list[dict[str, str]]:
    """Return the differences for `--diff`."""
    shown = []
    for name, new in sorted(files.items()):
        path, old = f"{directory}/{name}", before.get(name, "")
        if new and old != new:
            shown.append({"prepared": difference.text(path, old, new)})
    return shown


def main() -> None:
    """Run the module."""
    # Others than root read what is in the directories that this creates, whatever root's umask.
    os.umask(0o022)
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
        module.fail_json(msg="expected slurm.conf in files; add it")
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
        module.fail_json(msg=f"cannot write the configuration to {directory}: {error}")
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
