# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Look up the addresses of nodes once for all hosts of a play. Opens no connection, changes nothing.

Its one argument is `names`; `by_name` in its result has `os_address` of each node that has one.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Reads the variables of hosts on the controlling computer."""

    _requires_connection = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset({"names"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the addresses."""
        del tmp
        variables = task_vars or {}
        found = {name: variables["hostvars"][name].get("os_address") for name in self._task.args["names"]}
        return {"changed": False, "by_name": {name: address for name, address in found.items() if address}}
