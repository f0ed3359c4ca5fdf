# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of firewall: it confirms a table on trial, once a new connection has passed it."""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
fresh = importlib.import_module("ansible.module_utils.slurmstead.reach.fresh")


class ActionModule(ActionBase):
    """Loads the firewall of the current machine."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result; fail if the machine cannot be reached any more."""
        del tmp
        variables = task_vars or {}
        host = str(variables["inventory_hostname"])
        seconds = int(self._task.args.get("deadline") or 120)
        result: dict[str, Any] = self._execute_module(module_args=self._task.args, task_vars=variables)
        if not result.get("trial"):
            return result
        said = fresh.silence(variables["hostvars"][host], host, seconds)
        if said:
            return {
                "failed": True,
                "msg": f"{host} did not answer a new connection through its new firewall ({said}); its previous "
                f"firewall is restored {seconds} s after the change. Compare firewall_ssh_from, and the port of its "
                "sshd, with the way in which this computer reaches it",
            }
        confirmed: dict[str, Any] = self._execute_module(module_args={"state": "confirmed"}, task_vars=variables)
        return confirmed if confirmed.get("failed") or confirmed.get("unreachable") else result
