# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Decode on a machine the MUNGE credentials that other machines signed, as the login user.

Its one argument is `credentials`, by name of the signing machine; `refused` in its result has unmunge's error for each
credential that it refused.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

SECONDS = 15
"""Timeout for munge's answer."""

READ = f"""while read -r signer credential; do
  said=$(printf %s "$credential" | timeout {SECONDS} /usr/bin/unmunge --no-output 2>&1) ||
    echo "$signer ${{said:-no answer within {SECONDS} s}}"
done"""
"""A shell script, because a shell starts ten times faster than Python."""


class ActionModule(ActionBase):
    """Decodes credentials on a machine."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the errors for refused credentials."""
        del tmp, task_vars
        lines = (f"{signer} {credential}\n" for signer, credential in self._task.args["credentials"].items())
        done = self._low_level_execute_command(READ, in_data="".join(lines).encode())
        if done["rc"]:
            return {"failed": True, "msg": done["stderr"] or done["stdout"]}
        return {"changed": False, "refused": dict(line.split(" ", 1) for line in done["stdout_lines"])}
