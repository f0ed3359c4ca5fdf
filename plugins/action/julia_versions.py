# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of julia_versions: it copies local archives to the machine when they are needed."""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
transfer = importlib.import_module("ansible.module_utils.slurmstead.reach.handed")


class ActionModule(ActionBase):
    """Copies the missing archives to the machine, then runs the module to install them."""

    TRANSFERS_FILES = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result."""
        del tmp
        variables = task_vars or {}
        args = self._task.args
        archives = [dict(archive) for archive in args["archives"]]
        if not self._task.check_mode and any(archive.get("file") for archive in archives):
            looked: dict[str, Any] = self._execute_module(module_args={**args, "look": True}, task_vars=variables)
            if "missing" not in looked:
                return looked
            for archive in archives:
                if archive.get("file") and f"{archive['version']}-{archive['architecture']}" in looked["missing"]:
                    path = pathlib.Path(archive["file"]).expanduser()
                    if not path.is_file():
                        return {
                            "failed": True,
                            "msg": f"{path}, the archive of Julia {archive['version']}, is not a file",
                        }
                    archive["file"] = transfer.handed(self, path)
        try:
            result: dict[str, Any] = self._execute_module(
                module_args={**args, "archives": archives}, task_vars=variables
            )
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result
