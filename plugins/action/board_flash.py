# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Write an image of this computer to a module, by the BMC of its board, and switch the module on.

Never fails because of the board, so that its task can hide the password; see `problem` in its result.

Arguments:

machine    the fields of power.model.Machine
image      path of this computer
control    name of the machine from which the BMC is reached; empty: from this computer
progress   path of a file that has a line about the progress
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from collections.abc import Callable
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
flash = importlib.import_module("ansible.module_utils.slurmstead.board.flash")
model = importlib.import_module("ansible.module_utils.slurmstead.power.model")
reach = importlib.import_module("ansible.module_utils.slurmstead.reach.ssh")


class ActionModule(ActionBase):
    """Flashes a module."""

    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the `problem`, empty if the image is written and the module on."""
        del tmp
        given, hosts = self._task.args, (task_vars or {})["hostvars"]
        machine = model.Machine.read(given["machine"])
        control = given["control"]
        if control and not reach.is_here(hosts[control]):
            machine = dataclasses.replace(machine, through=reach.ssh_command(hosts[control], control)[:-1])
        try:
            flash.flash(machine, pathlib.Path(given["image"]), _teller(pathlib.Path(given["progress"])))
        except flash.FlashError as error:
            return {"changed": False, "problem": f"{machine.name}: {error}"}
        finally:
            pathlib.Path(given["progress"]).write_text("")
        return {"changed": True, "problem": ""}


def _teller(path: pathlib.Path) -> Callable[[str], None]:
    """Return what writes a line to a file if it is another one than before."""
    told = ""

    def tell(line: str) -> None:
        nonlocal told
        if line != told:
            told = line
            path.write_text(line)

    return tell
