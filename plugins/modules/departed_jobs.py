#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Cancel the Slurm jobs of users who left."""

from __future__ import annotations

DOCUMENTATION = r"""
module: departed_jobs
short_description: Cancel the Slurm jobs of users who left
description:
  - Cancels the jobs of users, and those that these jobs submit while they end, until none is left. For the node of
    slurmctld, after the accounts were locked on all machines.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  users: {type: list, elements: str, required: true, description: Names of the users.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Cancel the jobs of users who left
  departed_jobs:
    users: [bob]
"""

RETURN = r"""
cancelled: {description: Users whose jobs were or would be cancelled., type: list, elements: str, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach.deadline import wait_while

END = 60
"""Seconds within which jobs end; slurmd kills their processes KillWait (30 s) after scancel."""


class QueueError(Exception):
    """slurmctld does not say who has jobs."""


def owners(module: AnsibleModule, users: list[str]) -> list[str]:
    """Return those of users who have jobs. Raises QueueError."""
    squeue = ["squeue", "--all", "--noheader", "--format=%u", f"--user={','.join(users)}"]
    code, out, err = module.run_command(["timeout", "20", *squeue])
    if code:
        raise QueueError(err.strip().partition("\n")[0] or "slurmctld does not answer")
    return sorted({*out.split()})


def cancel(module: AnsibleModule, users: list[str]) -> list[str]:
    """Cancel the jobs that users have now; return who has some. Raises QueueError."""
    found = owners(module, users)
    # scancel takes one name.
    for name in found:
        module.run_command(["timeout", "20", "scancel", f"--user={name}"])
    return found


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"users": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True
    )
    users, cancelled, why = module.params["users"], list[str](), ""
    try:
        cancelled = owners(module, users)
        if cancelled and not module.check_mode:
            if left := wait_while(lambda: cancel(module, users), END, every=1):
                why = f"those of {', '.join(left)} did not end within {END} s"
    except QueueError as error:
        why = str(error)
    if why:
        module.warn(f"not all jobs of users who left were cancelled: {why}; run `stead up --tags accounts`")
    diff = [{"prepared": "".join(f"jobs of {name}\n" for name in cancelled)}] if cancelled else []
    module.exit_json(changed=bool(cancelled), cancelled=cancelled, diff=diff)


if __name__ == "__main__":
    main()
