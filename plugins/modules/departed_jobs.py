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

import time

from ansible.module_utils.basic import AnsibleModule

END = 60
"""Seconds within which jobs end; slurmd kills their processes KillWait (30 s) after scancel."""


def cancel(module: AnsibleModule, users: list[str]) -> list[str]:
    """Cancel the jobs of users; return the names of those who had some. Warns if some remain."""
    done: set[str] = set()
    names, deadline = ",".join(users), time.monotonic() + END
    while True:
        squeue = ["squeue", "--all", "--noheader", "--format=%u", f"--user={names}"]
        code, out, err = module.run_command(["timeout", "20", *squeue])
        here = set(out.split())
        done |= here
        if code:
            why = err.strip().partition("\n")[0] or "slurmctld does not answer"
        elif not here or module.check_mode:
            return sorted(done)
        elif time.monotonic() > deadline:
            why = f"those of {', '.join(sorted(here))} did not end within {END} s"
        else:
            # scancel takes one name.
            for name in sorted(here):
                module.run_command(["timeout", "20", "scancel", f"--user={name}"])
            time.sleep(1)
            continue
        module.warn(f"not all jobs of users who left were cancelled: {why}; run `stead up --tags accounts`")
        return sorted(done)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"users": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True
    )
    cancelled = cancel(module, module.params["users"])
    diff = [{"prepared": "".join(f"jobs of {name}\n" for name in cancelled)}] if cancelled else []
    module.exit_json(changed=bool(cancelled), cancelled=cancelled, diff=diff)


if __name__ == "__main__":
    main()
