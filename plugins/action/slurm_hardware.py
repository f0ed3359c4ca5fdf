# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of slurm_hardware: it records the measurements."""

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
    """Measures a node and records changes."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the measurement; `changed` if it differs from the record."""
        del tmp
        variables = task_vars or {}
        result: dict[str, Any] = self._execute_module(module_args={}, task_vars=variables)
        if result.get("failed") or result.get("unreachable"):
            return result
        name = variables["inventory_hostname"]
        directory = self._task.args.get("directory") or f"{variables['inventory_dir']}/hardware"
        file = pathlib.Path(directory, f"{name}.yml")
        before = file.read_text() if file.exists() else ""
        try:
            known = record.read(file) if before else {}
        except record.RecordError as error:
            return {"failed": True, "msg": str(error)}
        if known and result.get("temporary"):
            return result
        new = record.remembered(known, result["hardware"])
        after = record.HEADER + yaml.safe_dump(new)
        result["changed"] = before != after
        if result["changed"]:
            result |= self._told(name, known, new)
            result["diff"] = [{"before": before, "after": after, "before_header": file.name, "after_header": file.name}]
            if not self._task.check_mode:
                record.keep(file, after.encode())
        return result

    def _told(self, name: str, known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        """Return the message about what changed, and a warning if the node has become smaller."""
        if not known:
            return {"msg": f"{name}: measured for the first time"}
        changes = "; ".join(record.changes(known, new)) or "more values are recorded than before"
        told: dict[str, Any] = {"msg": f"{name}: {changes}"}
        if record.has_shrunk(known, new):
            told["warnings"] = [
                f"{name} has become smaller: {changes}. Its line in slurm.conf will change; if the machine is faulty, "
                "fix it and run `stead up` again."
            ]
        return told
