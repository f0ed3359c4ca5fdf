# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Make a copy of an image with the account of the role bootstrap inside, on this computer.

Arguments:

source, target   paths of this computer
work             path of an empty directory beside the target
user, keys       the account and its public keys
sudoers, sshd    text of its file for sudo, and of the server's settings
"""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
account = importlib.import_module("ansible.module_utils.slurmstead.board.account")
image = importlib.import_module("ansible.module_utils.slurmstead.board.image")
table = importlib.import_module("ansible.module_utils.slurmstead.board.partitions")


class ActionModule(ActionBase):
    """Prepares an image."""

    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the name of the `system` in the image, or why there is no target."""
        del tmp, task_vars
        given = dict(self._task.args)
        paths = [pathlib.Path(given.pop(name)) for name in ("source", "target", "work")]
        if not given["keys"]:
            return {"failed": True, "msg": "bootstrap_authorized_keys of control is empty; nothing was written"}
        try:
            return {"changed": True, "system": image.prepare(*paths, account.Wanted(**given))}
        except table.ImageError as error:
            return {"failed": True, "msg": str(error)}
