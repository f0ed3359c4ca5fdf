# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Explain on the machine that runs slurmctld why a job waits. Changes nothing.

Its one argument is `number`, the number of a job or of a task of an array. It fails if the job is unknown or can never
run, which is `hopeless` in its result; `lines` are sentences about the job.
"""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
remote_call = importlib.import_module("ansible.module_utils.slurmstead.reach.remote_call")


class ActionModule(ActionBase):
    """Asks the machine."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the sentences."""
        del tmp, task_vars
        arguments = {"number": str(self._task.args["number"])}
        result: dict[str, Any] = remote_call.ask(self._low_level_execute_command, "doctor.job", "look", arguments)
        if "returned" in result:
            told = result.pop("returned")
            result |= {**told, "failed": told["hopeless"], "msg": "\n".join(told["lines"])}
        return result
