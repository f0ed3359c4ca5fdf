# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Have a machine read the MUNGE credentials that others signed.

Its one argument is `credentials`, by the name of the machine that signed; `refused` in its result has what unmunge said
of those that it refused.
"""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
remote_call = importlib.import_module("ansible.module_utils.slurmstead.remote_call")


class ActionModule(ActionBase):
    """Has a machine read credentials."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what was refused; fails if munge does not answer."""
        del tmp, task_vars
        arguments = {"credentials": self._task.args["credentials"]}
        execute = self._low_level_execute_command
        result: dict[str, Any] = remote_call.ask(execute, "credentials", "refused", arguments)
        if "returned" in result:
            result["refused"] = result.pop("returned")
        return result
