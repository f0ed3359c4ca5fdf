# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Lock the cluster for this run. If another run has the lock, fail and name that run."""

from __future__ import annotations

import datetime
import getpass
import importlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import uuid
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
UTILITIES = str(pathlib.Path(__file__).parents[1] / "module_utils")
ansible.module_utils.__path__.append(UTILITIES)
constants = importlib.import_module("ansible.constants")
context = importlib.import_module("ansible.context")
lock = importlib.import_module("ansible.module_utils.slurmstead.reach.cluster_lock")
reach = importlib.import_module("ansible.module_utils.slurmstead.reach.ssh")

WATCHER = f"""
import ansible.module_utils
ansible.module_utils.__path__.append({UTILITIES!r})
from ansible.module_utils.slurmstead.reach import lock_watcher
lock_watcher.main()
"""

LOADED = "SLURMSTEAD_LEASE_IS_CHECKED"
"""See plugins/callback/cluster_lease.py."""

COMMAND = "STEAD_COMMAND"
"""Variable of the environment: the command of stead that runs the playbook."""


class ActionModule(ActionBase):
    """Holds the lock on every machine that answers, until ansible-playbook ends."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Take the lock, or fail and say which run has it, since when and with which command."""
        del tmp
        if self._task.check_mode:
            return {"skipped": True}
        if LOADED not in os.environ:
            msg = "the callback plugin cluster_lease is not loaded; use the ansible.cfg of this repository"
            return {"failed": True, "msg": msg}
        variables = (task_vars or {})["hostvars"]
        directory = pathlib.Path(constants.DEFAULT_LOCAL_TMP) / "cluster-lock"
        if directory.exists():
            # An earlier playbook of this run took the lock.
            return {"changed": False}
        answer = self._watch(directory, order((task_vars or {})["groups"]), variables)
        if "refused" in answer:
            ends = (
                f"Wait until that run ends, or end it; the lock of a dead run ends by itself within {lock.LEASE:.0f} s"
            )
            return {"failed": True, "msg": f"the cluster is locked: {answer['refused']}; nothing was changed. {ends}."}
        unlocked = [f"{name}: {why}" for name, why in sorted(answer.get("failed", {}).items()) if why]
        if not answer.get("held") and (unlocked or not answer):
            return {"failed": True, "msg": f"no machine can be locked: {'; '.join(unlocked) or 'the watcher ended'}"}
        return {"changed": False, "held": answer["held"]}

    @staticmethod
    def _watch(directory: pathlib.Path, names: list[str], variables: Any) -> dict[str, Any]:
        """Start the watcher; return what it printed."""
        directory.mkdir(mode=0o700)
        holder = reach.as_root("python3", "-c", lock.HOLDER, uuid.uuid4().hex, description())
        plan = {
            # An Ansible worker process runs this; its parent lives as long as the run.
            "watched": os.getppid(),
            "directory": str(directory),
            "machines": [[name, reach.command_on(variables[name], name, holder)] for name in names],
        }
        with (directory / "watcher.log").open("wb") as log:
            watcher = subprocess.Popen(
                [sys.executable, "-c", WATCHER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                text=True,
            )
        assert watcher.stdin and watcher.stdout
        with watcher.stdin as given:
            json.dump(plan, given)
        said = watcher.stdout.readline()
        answer: dict[str, Any] = json.loads(said) if said else {}
        return answer


def order(groups: dict[str, list[str]]) -> list[str]:
    """Return all machines in the order in which every run locks them.

    >>> order({"all": ["node3", "node1", "node2"], "control": ["node2"]})
    ['node2', 'node1', 'node3']
    """
    control = set(groups.get("control", []))
    return sorted(groups["all"], key=lambda name: (name not in control, name))


def description() -> str:
    """Return who runs which command since when, for the one who is refused; the options could contain a secret."""
    now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    playbooks = " ".join(pathlib.PurePath(name).name for name in context.CLIARGS.get("args", ()))
    command = os.environ.get(COMMAND) or f"ansible-playbook {playbooks}"
    return f"{getpass.getuser()}@{socket.gethostname()} runs `{command}` since {now}"
