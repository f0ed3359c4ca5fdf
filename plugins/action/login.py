# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of login: it confirms PAM's files on trial, once a new connection has passed them."""

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
    """Closes the current machine to users without a job."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result; fail if Ansible cannot log in any more."""
        del tmp
        variables = task_vars or {}
        host = str(variables["inventory_hostname"])
        arguments = dict(self._task.args)
        seconds = int(arguments.get("deadline") or 120)
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=variables)
        if not result.get("trial"):
            return result
        said = fresh.refusal(variables["hostvars"][host], host, max(5, seconds - 10))
        if said:
            return {
                "failed": True,
                "msg": f"{host} did not accept a new login with its new PAM files ({said.splitlines()[-1]}); its "
                f"previous files are restored {seconds} s after the change. Add the account of Ansible to "
                "login_administrators, and let it log in with a key",
            }
        confirmed: dict[str, Any] = self._execute_module(module_args={"state": "confirmed"}, task_vars=variables)
        if not confirmed.get("failed") and not confirmed.get("unreachable") and arguments.get("state") == "absent":
            confirmed = self._execute_module(module_args=arguments, task_vars=variables)
        return confirmed if confirmed.get("failed") or confirmed.get("unreachable") else result
