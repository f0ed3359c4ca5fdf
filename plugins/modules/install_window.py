#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Let one machine boot into the installer, and wait for what it reports."""

from __future__ import annotations

DOCUMENTATION = r"""
module: install_window
short_description: Let one machine boot into the installer, and wait for what it reports
description:
  - While C(slurmstead-install.service) runs, the machine with one MAC boots over the network, and control serves the
    installer to its address. C(open) starts the unit for a new installation, C(closed) stops it.
  - C(started), C(writing) and C(installed) wait until the machine reports that stage. They fail if it refuses.
attributes:
  check_mode: {support: full}
options:
  state: {type: str, required: true, choices: [open, started, writing, installed, closed], description: What to do.}
  plan: {type: dict, default: {}, description: The machine, as in the role; for C(open).}
  image: {type: path, default: '', description: Directory of the image; for C(open).}
  deadline: {type: int, default: 60, description: Minutes to wait.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Wait until the machine has booted over the network
  install_window:
    state: started
    deadline: 30
"""

RETURN = r"""
report: {description: What the machine reported., type: dict, returned: after waiting}
"""

import json
import os
import pathlib
import secrets
import socket
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.install import plan as plans
from ansible.module_utils.slurmstead.install.reports import HINTS, reached
from ansible.module_utils.slurmstead.reach.commands import run

UNIT = "slurmstead-install.service"
DIRECTORY = pathlib.Path("/var/lib/slurmstead-install")
REPORTS = pathlib.Path("/run/slurmstead-install/reports")
"""RuntimeDirectory of the unit."""


def open_window(module: AnsibleModule) -> None:
    """Write what is served, and start the unit."""
    given = plans.plan(module.params["plan"])
    if answers(given.address):
        module.fail_json(
            msg=f"{given.node} answers ssh at {given.address}, so it has a system; nothing was started. To make it a "
            f"worker, run `scripts/stead add-node {given.node}{host_key(given)}`. To install it again, switch it off "
            "and erase its disk first"
        )
    image = module.params["image"]
    token = secrets.token_hex(8)
    served = plans.served(given, token, image, pathlib.Path(image, "checksum").read_text().strip())
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    (DIRECTORY / "served").write_text(json.dumps(served))
    (DIRECTORY / "dnsmasq.conf").write_text(plans.dnsmasq(given, token))
    REPORTS.unlink(missing_ok=True)
    systemctl(module, "restart")


def host_key(given: plans.Plan) -> str:
    """Return the option with the fingerprint that a machine reported, if it was the last to be installed."""
    served = DIRECTORY / "served"
    last = json.loads(served.read_text())["node"] if served.exists() else ""
    found = reached(reported(), "installed") if last == given.address else None
    return f" --host-key {found['host_key']}" if found and "host_key" in found else ""


def answers(address: str) -> bool:
    """Say whether a machine has ssh."""
    try:
        socket.create_connection((address, 22), 3).close()
    except OSError:
        return False
    return True


def systemctl(module: AnsibleModule, verb: str) -> None:
    """Start or stop the unit."""
    code, _, said = run("systemctl", verb, UNIT, seconds=90)
    if code:
        module.fail_json(msg=f"systemctl {verb} {UNIT}: {said.strip()}; see journalctl --unit {UNIT}")


def reported() -> str:
    """Return all reports of this installation; the server creates the file."""
    return REPORTS.read_text() if REPORTS.exists() else ""


def wait(module: AnsibleModule, stage: str) -> None:
    """Wait until the machine has reached a stage."""
    end = time.monotonic() + 60 * module.params["deadline"]
    while True:
        found = reached(reported(), stage)
        if found and found["stage"] in ("refused", "failed"):
            module.fail_json(msg=f"the machine {found['stage']}: {found.get('text', '')}", report=found)
        if found:
            said = f"{stage}: {found['disk']}" if stage == "writing" else ""
            module.exit_json(changed=False, report=found, said=said)
        if time.monotonic() > end:
            module.fail_json(msg=f"after {module.params['deadline']} minutes the machine {HINTS[stage]}")
        if run("systemctl", "is-active", "--quiet", UNIT)[0]:
            module.fail_json(msg=f"{UNIT} ended; see journalctl --unit {UNIT}")
        time.sleep(1)


def main() -> None:
    """Run the module."""
    # The server has no rights, and reads what is written here, whatever root's umask.
    os.umask(0o022)
    states = ["open", "started", "writing", "installed", "closed"]
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": states},
            "plan": {"type": "dict", "default": {}},
            "image": {"type": "path", "default": ""},
            "deadline": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    state = module.params["state"]
    if module.check_mode:
        module.exit_json(changed=state in ("open", "closed"), report={})
    if state == "open":
        open_window(module)
    elif state == "closed":
        systemctl(module, "stop")
    else:
        wait(module, state)
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
