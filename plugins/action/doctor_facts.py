# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Look at everything on a machine that says whether its cluster is healthy. Reads, and never writes.

Arguments:

names    names of the machines that it has to know
units    units that have to run, without `.service`
paths    whether a file system of its own has to be mounted there, by directory
ports    TCP ports that are open on purpose

`facts` in its result has what was seen (see module_utils/slurmstead/doctor/facts), `offset` the least and the most
that the machine's clock can be ahead of this computer's, in seconds. What does not answer is given up after seconds.
"""

from __future__ import annotations

import importlib
import pathlib
import time
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
remote_call = importlib.import_module("ansible.module_utils.slurmstead.reach.remote_call")


class ActionModule(ActionBase):
    """Reads a machine between two looks at the clock here."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what was seen, and `offset`."""
        del tmp, task_vars
        # One for all machines of a run, and another one in the next (get_unique_id in ansible/utils/vars.py).
        arguments = {"ports": [], **self._task.args, "salt": str(self._task._uuid)}
        execute, before = self._low_level_execute_command, time.time()
        result: dict[str, Any] = remote_call.ask(execute, "doctor.facts.everything", "collect", arguments)
        if "returned" in result:
            facts = result.pop("returned")
            offset = [facts["time"] - time.time(), facts["time"] - before]
            result |= {"facts": facts, "offset": offset}
        return result
