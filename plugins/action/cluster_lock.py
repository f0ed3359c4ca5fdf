# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Lock the cluster for this run. If another run has the lock, fail and name that run."""

from __future__ import annotations

import datetime
import getpass
import importlib
import os
import pathlib
import select
import socket
import subprocess
import sys
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
lock = importlib.import_module("ansible.module_utils.slurmstead.reach.cluster_lock")
reach = importlib.import_module("ansible.module_utils.slurmstead.reach.ssh")

SECONDS = 60
"""Timeout for the control node's answer; emulated machines are slow."""


class ActionModule(ActionBase):
    """Holds the lock on the control node until ansible-playbook ends."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Take the lock, or fail and say which run has held it since when.

        If the control node does not answer, only warn: the run itself will report it.
        """
        del tmp
        host = self._task.args["host"]
        variables = (task_vars or {})["hostvars"][host]
        if self._task.check_mode:
            return {"skipped": True}
        said = self._hold(variables, host)
        if said == lock.HELD:
            return {"changed": False}
        if said:
            return {
                "failed": True,
                "msg": f"the cluster is locked by {said}; nothing was changed. Wait until that run ends, or end it.",
            }
        why = f"{host} does not answer, or its sudo asks for a password"
        return {"changed": False, "warnings": [f"the cluster is not locked against a second run: {why}"]}

    def _hold(self, variables: Any, host: str) -> str:
        """Start the watcher; return the first line of the holder, empty if there was no answer."""
        now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        # An Ansible worker process runs this; its parent lives as long as the run.
        run = os.getppid()
        me = f"{getpass.getuser()}@{socket.gethostname()} (process {run})"
        holder = reach.as_root("python3", "-c", lock.HOLDER, f"{me} since {now}")
        watcher = subprocess.Popen(
            [sys.executable, "-c", lock.WATCHER, str(run), *reach.command_on(variables, host, holder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        assert watcher.stdout is not None
        heard = select.select([watcher.stdout], [], [], SECONDS)[0]
        said = watcher.stdout.readline().strip() if heard else ""
        if said != lock.HELD:
            watcher.kill()
        return str(lock.answer(said, me))
