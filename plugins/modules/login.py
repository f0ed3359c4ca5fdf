#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Close a worker to users who have no job on it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: login
short_description: Close a worker to users who have no job on it, or limit what cron and at run for them
description:
  - Keeps blocks in the PAM files of sshd, su, cron, at and C(systemd --user). sshd accepts users with a job
    (pam_slurm_adopt), and like the others root, I(users) and the group C(sudo). With I(limited) it keeps a block in
    those of cron and at, which puts what they run into the slice of its user.
  - Changed files are on trial. The action plugin of the same name then opens a new connection to the machine. If that
    fails, the controlling computer is lost, or the machine boots, the machine restores the previous files.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  state:
    description: What is done; C(absent) also removes the list of users, C(confirmed) ends a trial.
    type: str
    choices: [present, absent, confirmed]
    default: present
  only_with_jobs: {type: bool, default: false, description: Whether this machine is closed to users without a job.}
  limited: {type: bool, default: false, description: Whether the limits of users hold for cron and at.}
  users: {type: list, elements: str, default: [], description: Users who need no job.}
  deadline: {type: int, default: 120, description: Seconds after which unconfirmed files are removed.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Close the worker to users without a job
  login:
    only_with_jobs: true
    users: [ansible]
"""

RETURN = r"""
trial: {description: Whether files were written that have to be confirmed., type: bool, returned: always}
"""

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.login import live, pam
from ansible.module_utils.slurmstead.reach import difference


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent", "confirmed"], "default": "present"},
            "only_with_jobs": {"type": "bool", "default": False},
            "limited": {"type": "bool", "default": False},
            "users": {"type": "list", "elements": "str", "default": []},
            "deadline": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    # Others than root read what is in the directories that this creates.
    os.umask(0o022)
    try:
        if module.params["state"] == "confirmed":
            if not module.check_mode:
                live.confirm()
            module.exit_json(changed=True, trial=False)
        module.exit_json(**keep(module))
    except (live.LoginError, pam.PamError, OSError) as error:
        module.fail_json(msg=f"the logins of this machine were not changed: {error}")


def keep(module: AnsibleModule) -> dict[str, Any]:
    """Write the list of users, and PAM's files on trial if they differ."""
    present, dry = module.params["state"] == "present", module.check_mode
    if live.TRIAL.new.exists() and not dry:
        live.forget(roll_back=True)
    only_with_jobs, limited = (present and module.params[name] for name in ("only_with_jobs", "limited"))
    files = live.differing(live.wanted(only_with_jobs, limited, dry))
    new_list = live.differing({Path(pam.LIST): live.list_text(module.params["users"]) if present else None})
    shown = changes({**new_list, **files})
    if not dry and (present or not files):
        # PAM's new files need the list, and a rollback may leave it.
        live.put(new_list)
    if not dry and files:
        live.begin(files, module.params["deadline"])
    return {"changed": bool(files or new_list), "trial": bool(files) and not dry, "diff": shown}


def changes(files: dict[Path, str | None]) -> list[dict[str, str]]:
    """Return the change as Ansible shows it."""
    shown = []
    for path, text in files.items():
        old = path.read_text() if path.is_file() else ""
        shown.append({"prepared": difference.text(path, old, text or "")})
    return shown


if __name__ == "__main__":
    main()
