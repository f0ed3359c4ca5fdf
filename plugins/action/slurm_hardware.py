# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of slurm_hardware: it remembers what was measured."""

from __future__ import annotations

import pathlib
from typing import Any

import yaml
from ansible.plugins.action import ActionBase

HEADER = "# Measured by site.yml; a node that is off keeps its place in the cluster by this file.\n"

MEMORY_TOLERANCE = 0.02
"""MemTotal is not the same after each boot; a difference below this part of it is none. Jobs get 5 % less anyway."""


def same_memory(known: Any, measured: int) -> bool:
    """Say whether the measured memory is the remembered one, both in MiB."""
    return isinstance(known, int) and abs(measured - known) <= known * MEMORY_TOLERANCE


class ActionModule(ActionBase):
    """Measures a node and writes down what is new."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module measured, changed if it is not what was known."""
        del tmp
        variables = task_vars or {}
        result: dict[str, Any] = self._execute_module(module_args={}, task_vars=variables)
        if result.get("failed") or result.get("unreachable"):
            return result
        directory = self._task.args.get("directory") or f"{variables['inventory_dir']}/hardware"
        file = pathlib.Path(directory, f"{variables['inventory_hostname']}.yml")
        before = file.read_text() if file.exists() else ""
        known = yaml.safe_load(before) or {}
        hardware = dict(result["hardware"])
        if same_memory(known.get("memory"), hardware["memory"]):
            hardware["memory"] = known["memory"]
        after = HEADER + yaml.safe_dump(hardware)
        result["changed"] = before != after
        if result["changed"]:
            result["diff"] = [{"before": before, "after": after, "before_header": file.name, "after_header": file.name}]
            if not self._task.check_mode:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(after)
        return result
