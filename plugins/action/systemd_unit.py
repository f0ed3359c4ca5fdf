# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The action systemd_unit: systemd_service that also accepts a missing unit."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

MISSING = "Could not find the requested service"
"""The message of systemd_service for a unit that does not exist (ansible/modules/systemd_service.py)."""


class ActionModule(ActionBase):
    """Starts, stops or restarts a unit."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return systemd_service's result; a missing unit is stopped or, in check mode, still to be installed."""
        del tmp
        result: dict[str, Any] = self._execute_module(
            module_name="ansible.builtin.systemd_service", module_args=self._task.args, task_vars=task_vars or {}
        )
        if MISSING in str(result.get("msg")):
            if self._task.args.get("state") == "stopped":
                return {"changed": False}
            if self._task.check_mode:
                return {"changed": True}
        return result
