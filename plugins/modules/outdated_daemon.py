#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Find daemons that started before their files came to their places."""

from __future__ import annotations

DOCUMENTATION = r"""
module: outdated_daemon
short_description: Find daemons that started before their files came to their places
description:
  - Reports a change if a daemon that runs has not read its files, so that the task can notify the handler that restarts
    it. Who wrote the files notifies it too, but that is forgotten when the run ends before its handlers.
  - Restarts nothing itself. A daemon that does not run will read its files when it starts.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  units: {type: dict, required: true, description: 'For each unit of systemd, the files that it reads at its start.'}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Find daemons that have not read their files
  outdated_daemon:
    units:
      redis-server.service: [/etc/redis/redis.conf]
  notify: Restart Redis
"""

RETURN = r"""
outdated: {description: The units that are to be restarted., type: list, elements: str, returned: always}
"""

import itertools
import pathlib

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead import munge
from ansible.module_utils.slurmstead.slurm_daemons import main_process


def unread(pid: int, files: list[str]) -> list[pathlib.Path]:
    """Return the files that came to their places after a process started, if that runs."""
    if munge.started(pid) is None:
        return []
    return [path for path in map(pathlib.Path, files) if path.exists() and not munge.has_read(pid, path)]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"units": {"type": "dict", "required": True}}, supports_check_mode=True)
    units: dict[str, list[str]] = module.params["units"]
    found = {unit: unread(main_process(unit), files) for unit, files in units.items()}
    if not module.check_mode:
        for path in itertools.chain.from_iterable(found.values()):
            munge.touch(path)
    outdated = [unit for unit, paths in found.items() if paths]
    module.exit_json(changed=bool(outdated), outdated=outdated)


if __name__ == "__main__":
    main()
