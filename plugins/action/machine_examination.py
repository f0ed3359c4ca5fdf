# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of machine_examination: it looks at its own clock, and salts the digest of the key."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Examines a machine between two looks at the clock here."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module returned, and `offset`."""
        del tmp
        # One for all machines of a run, and another one in the next (get_unique_id in ansible/utils/vars.py).
        arguments = {**self._task.args, "salt": str(self._task._uuid)}
        before = time.time()
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars or {})
        if "examined" in result:
            there = result["examined"]["time"]
            result["offset"] = [there - time.time(), there - before]
        return result
