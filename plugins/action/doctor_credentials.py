# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Decode on a machine the MUNGE credentials that others signed, as the user that logs in there.

Its one argument is `credentials`, by the name of the machine that signed; `refused` in its result has what unmunge said
of those that it refused.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

SECONDS = 15
"""Time in which munge answers."""

READ = f"""while read -r signer credential; do
  said=$(printf %s "$credential" | timeout {SECONDS} /usr/bin/unmunge --no-output 2>&1) ||
    echo "$signer ${{said:-no answer within {SECONDS} s}}"
done"""
"""A shell is there and starts in a tenth of the time that Python takes."""


class ActionModule(ActionBase):
    """Has a machine read credentials."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what was refused."""
        del tmp, task_vars
        lines = (f"{signer} {credential}\n" for signer, credential in self._task.args["credentials"].items())
        done = self._low_level_execute_command(READ, in_data="".join(lines).encode())
        if done["rc"]:
            return {"failed": True, "msg": done["stderr"] or done["stdout"]}
        return {"changed": False, "refused": dict(line.split(" ", 1) for line in done["stdout_lines"])}
