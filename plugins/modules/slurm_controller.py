#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Stop slurmctld so that no job starts, and start it again."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_controller
short_description: Stop slurmctld so that no job starts, and start it again
description:
  - Running jobs continue without slurmctld, and report their end when it is back. Meanwhile no job starts.
  - Workers in I(drain) accept no new jobs until their health check passes; nodes that an administrator drained stay
    drained.
  - What an administrator set with C(scontrol update), such as a closed partition, is set again after the start.
  - C(started) means that slurmctld answers. If systemd is about to start it, for example at boot, waits for that.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  state: {type: str, required: true, choices: [started, stopped], description: Wanted state of slurmctld.}
  drain: {type: list, elements: str, default: [], description: Names of workers that do not get the new MUNGE key.}
  deadline: {type: int, default: 120, description: Timeout in seconds for slurmctld to stop or to answer.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Stop slurmctld
  slurm_controller:
    state: stopped
"""

RETURN = r"""
drained: {description: Workers that were drained., type: list, elements: str, returned: success}
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.change.decisions import Decisions
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.gate.verdict import died_of
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.daemons import UNIT, Slurm, Systemd
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.workers import reasons

PAUSE = 0.2


def main() -> None:
    """Run the module."""
    # Others than root read what is in the directories that this creates, whatever root's umask.
    os.umask(0o022)
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["started", "stopped"]},
            "drain": {"type": "list", "elements": "str", "default": []},
            "deadline": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    slurm, stop = Slurm(), module.params["state"] == "stopped"
    if module.check_mode:
        module.exit_json(changed=stop == slurm.answers(), drained=[])
    was_up, store = slurm.answers(), Store()
    decisions, warnings = Decisions(store, slurm), list[str]()
    if not stop and not was_up:
        start(module, slurm)
    drained = drain(slurm, module.params["drain"]) if was_up or not stop else []
    if stop:
        warnings = decisions.keep(store.seen(), minutes=30) if was_up else []
        code, _, err = run("systemctl", "stop", UNIT, seconds=module.params["deadline"])
        if code:
            module.fail_json(msg=f"slurmctld does not stop: {err.strip()}; see `journalctl -u slurmctld`")
    else:
        warnings = decisions.finish()
    for warning in warnings:
        module.warn(warning)
    module.exit_json(changed=stop == was_up or bool(drained), drained=drained)


def start(module: AnsibleModule, slurm: Slurm) -> None:
    """Start slurmctld and wait until it answers."""
    service, until = Systemd(), time.monotonic() + module.params["deadline"]
    if service.state() != "starting":
        service.restart()
    while not slurm.answers():
        state = service.state()
        if time.monotonic() > until or state == "failed":
            said = died_of(service.words())
            module.fail_json(msg=f"slurmctld does not answer; its last output: {said}; see `journalctl -u slurmctld`")
        if state == "stopped":
            # It was stopping when this began.
            service.restart()
        time.sleep(PAUSE)


def drain(slurm: Slurm, names: list[str]) -> list[str]:
    """Drain the workers that are not drained yet; return them."""
    shown = slurm.nodes()
    new = sorted(name for name in names if name in shown and not reasons.is_left_alone(shown[name]))
    if new:
        slurm.update(compress(new), "DRAIN", reasons.OPERATIONS["rotate-key"])
    return new


if __name__ == "__main__":
    main()
