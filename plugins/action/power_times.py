# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Record on the controller how long a machine takes to switch off and on, beside its hardware.

Arguments:

directory  directory of the records
name       name of the machine
off, on    seconds
"""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import ansible.module_utils
import yaml
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
record = importlib.import_module("ansible.module_utils.slurmstead.hardware.record")


class ActionModule(ActionBase):
    """Records the times."""

    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return whether they are others than before."""
        del tmp, task_vars
        given = self._task.args
        file = pathlib.Path(given["directory"], f"{given['name']}.yml")
        try:
            known = record.read(file) if file.exists() else {}
        except record.RecordError as error:
            return {"failed": True, "msg": str(error)}
        new = {**known, record.POWER: {key: round(float(given[key])) for key in ("off", "on")}}
        if new != known:
            record.keep(file, (record.HEADER + yaml.safe_dump(new)).encode())
        return {"changed": new != known}
