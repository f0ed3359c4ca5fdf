# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Lock the cluster for this run; another run fails here and is told who holds the lock."""

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
"""In which the control node has to answer; emulated ones are slow."""


class ActionModule(ActionBase):
    """Takes the lock of the control node until ansible-playbook ends."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return nothing of note, or fail with who holds the cluster since when.

        A control node that does not answer is no reason to stop: the run itself will say so.
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
                "msg": f"the cluster is held by {said}; nothing was changed. Wait until that run has ended, or end it.",
            }
        why = f"{host} does not answer, or its sudo asks for a password"
        return {"changed": False, "warnings": [f"nothing keeps a second run away: {why}"]}

    def _hold(self, variables: Any, host: str) -> str:
        """Start the watcher; return what the holder said first, empty if it was not heard."""
        now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        # A worker of Ansible runs this: the process that lives as long as the run is its parent.
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
