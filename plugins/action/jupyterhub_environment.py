# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The controller's half of jupyterhub_environment: it fetches the packages for the machine, once, and copies them."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from typing import Any

import ansible.module_utils
from ansible.plugins.action import ActionBase
from packaging.markers import Marker

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
locks = importlib.import_module("ansible.module_utils.slurmstead.jupyterhub.lock")
transfer = importlib.import_module("ansible.module_utils.slurmstead.reach.handed")

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


class ActionModule(ActionBase):
    """Asks the machine for its Python, and hands it the wheels unless it has them."""

    TRANSFERS_FILES = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the module's result."""
        del tmp
        variables, args = task_vars or {}, self._task.args
        seen: dict[str, Any] = self._execute_module(module_args={**args, "look": True}, task_vars=variables)
        if "python" not in seen:
            return seen
        machine = locks.Machine(seen["python"], seen["architecture"])
        try:
            packages = wanted(args["lock"], machine, with_client=bool(args.get("client")))
        except locks.LockError as error:
            return {"failed": True, "msg": f"the lock for {args['directory']}: {error}"}
        full = {**args, "digest": packages.digest, "requirements": packages.text}
        try:
            result: dict[str, Any] = self._execute_module(module_args=full, task_vars=variables)
            if not result.get("missing"):
                return result
            with tempfile.TemporaryDirectory(prefix="stead-") as place:
                packed = pathlib.Path(place) / "wheels.tar"
                problem = packages.pack(packed)
                if problem:
                    return {"failed": True, "msg": problem}
                full["archive"] = transfer.handed(self, packed)
            return dict(self._execute_module(module_args=full, task_vars=variables))
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)


class Packages:
    """What a machine needs: lines of a requirements file, and the client, which no index has."""

    def __init__(self, machine: Any, lines: str, client: tuple[str, bytes] | None) -> None:
        self.machine, self.lines, self.client = machine, lines, client
        self.text = lines
        if client:
            name, content = client
            distribution, number = name.split("-")[:2]
            digest = hashlib.sha256(content).hexdigest()
            self.text += f"{distribution.replace('_', '-')}=={number} --hash=sha256:{digest}\n"

    @property
    def digest(self) -> str:
        """The name of the environment with these packages."""
        return hashlib.sha256(f"{self._for}{self.text}".encode()).hexdigest()[:16]

    @property
    def _for(self) -> str:
        return f"{self.machine.series} {self.machine.architecture}\n"

    def fetch(self) -> pathlib.Path | str:
        """Return a directory of this computer with the wheels, or why they cannot be fetched."""
        name = hashlib.sha256(f"{self._for}{self.lines}".encode()).hexdigest()[:16]
        directory = cache() / name
        if directory.is_dir():
            return directory
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=cache()) as place:
            needed, work = pathlib.Path(place) / "requirements.txt", pathlib.Path(place) / "wheels"
            needed.write_text(self.lines)
            options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
            command = [
                *(sys.executable, "-I", "-m", "pip", "download", *options, *self.machine.pip_options()),
                *(f"--dest={work}", f"--requirement={needed}"),
            ]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"this computer cannot fetch the Python packages for notebooks: {done.stderr.strip()[-2000:]}"
            if not directory.is_dir():
                work.rename(directory)
        return directory

    def pack(self, target: pathlib.Path) -> str:
        """Write an archive of the wheels; return the problem, if there is one."""
        wheels = self.fetch()
        if isinstance(wheels, str):
            return wheels
        with tarfile.open(target, "w") as archive:
            for path in sorted(wheels.glob("*.whl")):
                archive.add(path, path.name)
            if self.client:
                member = tarfile.TarInfo(self.client[0])
                member.size = len(self.client[1])
                archive.addfile(member, io.BytesIO(self.client[1]))
        return ""


def wanted(lock: str, machine: Any, *, with_client: bool) -> Packages:
    """Return what a machine needs of a lock. Raises LockError."""
    return Packages(machine, locks.chosen(lock, machine, applies), client() if with_client else None)


def applies(marker: str, facts: Mapping[str, str]) -> bool:
    """Say whether a marker holds for a machine."""
    return bool(Marker(marker).evaluate(dict(facts)))


def client() -> tuple[str, bytes]:
    """Return the name and the content of the client's wheel."""
    spec = importlib.util.spec_from_file_location("slurmstead_client_wheel", SCRIPTS / "slurmstead/client/wheel.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name, content = module.build()
    return str(name), bytes(content)


def cache() -> pathlib.Path:
    """Return the directory of fetched wheels, for all machines and sites."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "slurmstead" / "wheels"
