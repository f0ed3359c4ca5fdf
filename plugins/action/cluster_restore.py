# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of cluster_restore: it reads the archive and stores the measured hardware."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import pathlib
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
archive = importlib.import_module("ansible.module_utils.slurmstead.backup.archive")
record = importlib.import_module("ansible.module_utils.slurmstead.hardware.record")


class ActionModule(ActionBase):
    """Reads an archive on this computer and sends it to the control node."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the problems that prevent the restore, or a report on it."""
        del tmp
        args = self._task.args
        path = pathlib.Path(args["archive"]).expanduser()
        try:
            packed = path.read_bytes()
            manifest, files = archive.unpack(packed)
        except OSError as error:
            return {"changed": False, "problems": [f"{path} cannot be read: {error.strerror}"], "notes": []}
        except archive.DamagedError as error:
            return {"changed": False, "problems": [f"{path} is damaged: {error}; use another archive"], "notes": []}
        handed: dict[str, Any] = {
            "manifest": json.dumps(manifest),
            "sha256": hashlib.sha256(packed).hexdigest(),
            "cluster": args["cluster"],
            "users": args.get("users") or [],
            "force": args.get("force", False),
        }
        if not args.get("look"):
            handed["content_base64"] = base64.b64encode(packed).decode()
        result: dict[str, Any] = self._execute_module(module_args=handed, task_vars=task_vars or {})
        if "problems" not in result:
            problem = str(result.get("msg") or "the control node returned no data")
            return {**result, "failed": False, "problems": [problem], "notes": []}
        if args.get("look"):
            result["changed"] = False
        elif not (result["problems"] or self._task.check_mode):
            _remember(archive.below(files, archive.HARDWARE), pathlib.Path(args["hardware"]))
        return result


def _remember(measured: dict[str, bytes], directory: pathlib.Path) -> None:
    """Write the archived hardware of nodes that have no record here."""
    for name, content in measured.items():
        path = directory / name
        if not path.exists():
            record.keep(path, content)
