# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of cluster_backup: it completes the archive and writes it."""

from __future__ import annotations

import base64
import importlib
import os
import pathlib
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
archive = importlib.import_module("ansible.module_utils.slurmstead.backup.archive")
durable = importlib.import_module("ansible.module_utils.slurmstead.reach.durable")


class ActionModule(ActionBase):
    """Reads the control node and writes an archive here."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return a report on the archive, without its secret content."""
        del tmp
        args = self._task.args
        result = self._execute_module(module_args={"cluster": args["cluster"]}, task_vars=task_vars or {})
        packed = result.pop("archive", None)
        if packed is None:
            problem = str(result.get("msg") or "the control node returned no data")
            return {**result, "failed": False, "problems": result.get("problems") or [problem]}
        try:
            manifest, files = archive.unpack(base64.b64decode(packed))
            files |= _measured(pathlib.Path(args["hardware"]))
            whole = archive.pack(manifest, files)
            path = _target(args.get("output"), archive.file_name(manifest))
            if not self._task.check_mode:
                write(path, whole)
        except (OSError, archive.DamagedError) as error:
            return {"changed": False, "problems": [f"the archive could not be written: {error}"]}
        said = {name: manifest[name] for name in archive.NEEDED}
        report = {**said, "path": str(path), "bytes": len(whole), "files": len(files)}
        return {"changed": True, "problems": [], "report": report}


def _measured(directory: pathlib.Path) -> dict[str, bytes]:
    return {f"{archive.HARDWARE}{path.name}": path.read_bytes() for path in sorted(directory.glob("*.yml"))}


def _target(output: str | None, name: str) -> pathlib.Path:
    """Return the archive's path; without `output` it is outside any repository."""
    if output:
        return pathlib.Path(output).expanduser().absolute()
    state = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    directory = pathlib.Path(state) / "slurmstead" / "backups"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory / name


def write(path: pathlib.Path, content: bytes) -> None:
    """Write an archive that only its owner can read; replace an older one only if the new one can be read back."""
    durable.write(path, content, mode=0o600, prove=lambda new: archive.unpack(new.read_bytes()))
