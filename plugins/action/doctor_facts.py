# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Collect the facts of a machine from which the doctor judges the cluster. Reads only, never writes.

Arguments:

names    addresses of the machines that it must be able to resolve, by name
units    units that must run, without `.service`
paths    by directory: whether a separate file system must be mounted there
ports    ports that may be open, for `tcp` and `udp`
homes    directory of the homes on the share, and the same where this machine stores it (empty on the others)

In its result, `facts` are the facts (see module_utils/slurmstead/doctor/facts), and `offset` the minimum and maximum
lead of the machine's clock over this computer's, in seconds. Each probe has a timeout of some seconds.
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
    """Reads a machine, and this computer's clock before and after."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the facts, and `offset`."""
        del tmp, task_vars
        # The same for all machines of a run, different in the next run (get_unique_id in ansible/utils/vars.py).
        arguments = {
            "ports": {"tcp": [], "udp": []},
            "peers": {},
            "homes": ["", ""],
            **self._task.args,
            "salt": str(self._task._uuid),
        }
        execute, before = self._low_level_execute_command, time.time()
        result: dict[str, Any] = remote_call.ask(execute, "doctor.facts.everything", "collect", arguments)
        if "returned" in result:
            facts = result.pop("returned")
            offset = [facts["time"] - time.time(), facts["time"] - before]
            result |= {"facts": facts, "offset": offset}
        return result
