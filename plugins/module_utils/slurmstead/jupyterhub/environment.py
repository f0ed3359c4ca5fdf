# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Virtual environments of locked packages, side by side in one directory, and the link to the newest one.

A program that runs keeps the files with which it began: what is replaced stays for KEPT seconds.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import time

PYTHON = "/usr/bin/python3"
CURRENT = "current"
COMPLETE, REPLACED = "complete", "replaced"
"""Files in an environment: everything is installed; another one became the current one."""

KEPT = 30 * 24 * 3600
"""Longer than any notebook runs."""

OWN = ("slurmstead_client-", "pathspec-")
"""Beginnings of the wheels that users install on their own computers."""

LAB = "share/jupyter/lab"
NOTIFICATIONS = "@jupyterlab/apputils-extension:notification"
SETTINGS = {
    # Without questions about news, and without looking for updates.
    "overrides.json": {NOTIFICATIONS: {"fetchNews": "false", "checkForUpdates": False}},
    # The debugger of a kernel, which the locks leave out (debugpy), would obey any user of the same worker.
    "page_config.json": {"disabledExtensions": {"@jupyterlab/debugger-extension": True}},
}
"""Files of JupyterLab's settings."""


class InstallError(Exception):
    """The environment cannot be made; the message says why."""


@dataclasses.dataclass
class Environments:
    """The directory of the environments, the name of the wanted one, and where users find wheels, if anywhere."""

    directory: pathlib.Path
    name: str
    wheels: pathlib.Path | None = None

    @property
    def path(self) -> pathlib.Path:
        """The directory of the wanted environment."""
        return self.directory / self.name

    @property
    def link(self) -> pathlib.Path:
        """The link to the newest environment."""
        return self.directory / CURRENT

    @property
    def is_installed(self) -> bool:
        """Whether the environment is complete."""
        return (self.path / COMPLETE).exists()

    @property
    def is_current(self) -> bool:
        """Whether the link points to it."""
        return self.link.is_symlink() and os.readlink(self.link) == self.name

    @property
    def wheels_differ(self) -> bool:
        """Whether users find other wheels than those of this environment."""
        if self.wheels is None:
            return False
        own = self.path / "wheels"
        return not self.wheels.is_dir() or not own.is_dir() or _names(self.wheels) != _names(own)

    def differences(self) -> list[str]:
        """Return what a run changes."""
        found = [] if self.is_installed and self.is_current else [f"{self.link} -> {self.name}"]
        return [*found, f"{self.wheels}: the wheels of {self.name}"] if self.wheels_differ else found

    def install(self, archive: pathlib.Path, requirements: str) -> None:
        """Install packages from a tar archive of their wheels.

        :raises InstallError: a command failed
        """
        if self.path.exists():
            shutil.rmtree(self.path)
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="slurmstead-") as name:
            wheels = pathlib.Path(name)
            _unpack(archive, wheels)
            (wheels / "requirements.txt").write_text(requirements)
            _run(PYTHON, "-I", "-m", "venv", "--without-pip", str(self.path))
            pip = next(wheels.glob("pip-*.whl"), None)
            if pip is None:
                raise InstallError("the lock does not contain pip, which installs the other packages")
            options = ["--no-index", f"--find-links={wheels}", "--no-deps", "--require-hashes", "--no-cache-dir"]
            command = [
                f"{self.path}/bin/python",
                "-I",
                f"{pip}/pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ]
            _run(*command, *options, f"--requirement={wheels}/requirements.txt")
            (self.path / "wheels").mkdir()
            for path in wheels.glob("*.whl"):
                if path.name.startswith(OWN):
                    shutil.copyfile(path, self.path / "wheels" / path.name)
        if (self.path / LAB).is_dir():
            (self.path / LAB / "settings").mkdir()
            for name, content in SETTINGS.items():
                (self.path / LAB / "settings" / name).write_text(json.dumps(content))
        _run("sync", "--file-system", str(self.path))
        (self.path / COMPLETE).touch()

    def switch(self) -> None:
        """Point the link to this environment, and remove those that were replaced long ago."""
        before = self.directory / os.readlink(self.link) if self.link.is_symlink() else None
        new = self.directory / f".{CURRENT}"
        new.unlink(missing_ok=True)
        new.symlink_to(self.name)
        new.replace(self.link)
        (self.path / REPLACED).unlink(missing_ok=True)
        if before and before != self.path and before.is_dir():
            (before / REPLACED).touch()
        for mark in self.directory.glob(f"*/{REPLACED}"):
            if mark.parent != self.path and not mark.parent.is_symlink() and time.time() - mark.stat().st_mtime > KEPT:
                shutil.rmtree(mark.parent)

    def publish(self) -> None:
        """Give users the wheels of this environment."""
        assert self.wheels
        self.wheels.mkdir(parents=True, exist_ok=True)
        own = _names(self.path / "wheels")
        for name in own - _names(self.wheels):
            shutil.copyfile(self.path / "wheels" / name, self.wheels / f".{name}")
            (self.wheels / f".{name}").replace(self.wheels / name)
        for name in _names(self.wheels) - own:
            (self.wheels / name).unlink()


def _unpack(archive: pathlib.Path, target: pathlib.Path) -> None:
    """Write the wheels of an archive into a directory, by their names alone."""
    with tarfile.open(archive) as packed:
        for member in packed:
            source = packed.extractfile(member)
            if source is None or "/" in member.name or not member.name.endswith(".whl"):
                raise InstallError(f"{archive}: {member.name!r} is not a wheel")
            with (target / member.name).open("wb") as file:
                shutil.copyfileobj(source, file)


def _names(directory: pathlib.Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.suffix == ".whl"}


def _run(*words: str) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(done.stderr.strip() or done.stdout.strip() or f"{words[0]} exited with {done.returncode}")
