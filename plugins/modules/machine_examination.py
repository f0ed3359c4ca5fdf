#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Look at everything on a machine that says whether its cluster is healthy."""

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_examination
short_description: Look at everything on a machine that says whether its cluster is healthy
description:
  - Reads, and never writes; M(cluster_diagnosis) says what the machines of a cluster have to do with each other.
  - Never fails for what it sees. What does not answer is given up after seconds.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  names: {type: list, elements: str, required: true, description: Names of the machines that it has to know.}
  units: {type: list, elements: str, required: true, description: 'Units that have to run, without C(.service).'}
  paths:
    description: Whether a file system of its own has to be mounted there, by directory.
    type: dict
    required: true
  ports: {type: list, elements: int, default: [], description: TCP ports that are open on purpose.}
  salt:
    description: Comes into the digest of the MUNGE key. The action takes another one for each run.
    type: str
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Look at the machine
  machine_examination:
    names: [node1, node2]
    units: [munge, slurmd]
    paths: {/share: true}
  register: examination
"""

RETURN = r"""
examined:
  description: What was seen, as the modules of C(module_utils/slurmstead/examination) describe it.
  type: dict
  returned: always
offset:
  description: The least and the most that the clock can be ahead of the controlling computer's, in seconds.
  type: list
  elements: float
  returned: success
"""

import os
import platform
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead import hardware
from ansible.module_utils.slurmstead.credentials import munge
from ansible.module_utils.slurmstead.examination import daemons, machine, slurm

CPUS = len(os.sched_getaffinity(0))


def credential() -> dict[str, str]:
    """Return a credential that this machine signed as the user nobody, or the `error` with which it did not."""
    try:
        signed = munge("/usr/bin/munge --no-input", "")
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": str(error)}
    return {"error": signed.stderr.strip() if signed.returncode else "", "text": signed.stdout.strip()}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "units": {"type": "list", "elements": "str", "required": True},
            "paths": {"type": "dict", "required": True},
            "ports": {"type": "list", "elements": "int", "default": []},
            "salt": {"type": "str", "no_log": True},
        },
        supports_check_mode=True,
    )
    wanted, release = module.params, platform.freedesktop_os_release()
    looks: dict[str, Callable[[], Any]] = {
        "addresses": machine.addresses,
        "resolved": lambda: machine.resolved(wanted["names"]),
        "clock": machine.clock,
        "accounts": machine.accounts,
        "key": lambda: machine.key(wanted["salt"] or ""),
        "paths": lambda: machine.paths(list(wanted["paths"])),
        "units": lambda: daemons.units(wanted["units"]),
        "failed": daemons.failed_units,
        "packages": daemons.packages,
        "listening": daemons.listening,
        "cgroup": lambda: hardware.cgroup(Path("/")),
        "slurm": lambda: slurm.look(wanted["units"]),
        "credential": credential,
    }
    examined = {
        "time": time.time(),
        "wanted": {key: wanted[key] for key in ("units", "paths", "ports")},
        "release": f"{release.get('ID')} {release.get('VERSION_ID')}",
        "name": os.uname().nodename,
    }
    # Most of the time is that of other programs.
    with ThreadPoolExecutor(CPUS) as pool:
        answers = {about: pool.submit(look) for about, look in looks.items()}
    examined |= {about: answer.result() for about, answer in answers.items()}
    module.exit_json(changed=False, examined=examined)


if __name__ == "__main__":
    main()
