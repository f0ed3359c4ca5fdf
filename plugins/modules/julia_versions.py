#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Install versions of Julia side by side in a directory."""

from __future__ import annotations

DOCUMENTATION = r"""
module: julia_versions
short_description: Install versions of Julia side by side in a directory
description:
  - Fetches archives of Julia, verifies their checksums before unpacking anything, and gives each version its name only
    when it is completely on the disk. Installed versions are not checked again, and none is removed.
  - The link C(default-ARCHITECTURE) points to the first archive of that architecture.
  - Archives given as files are on the controlling computer, and are copied only when they are needed.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  directory: {type: path, required: true, description: Directory of the versions.}
  source: {type: str, required: true, description: URL below which the archives are published.}
  archives:
    description: The versions, each with I(version), I(architecture), I(sha256) and, if it is not downloaded, I(file).
    type: list
    elements: dict
    required: true
  look: {type: bool, default: false, description: Only report which versions are missing.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Install Julia
  julia_versions:
    directory: /share/julia
    source: https://julialang-s3.julialang.org/bin
    archives:
      - {version: 1.10.5, architecture: aarch64, sha256: 0123…}
"""

RETURN = r"""
missing: {description: Names of the versions that were not installed., type: list, elements: str, returned: always}
"""

import hashlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

STAGE = ".new-"
"""Prefix of directories for unpacking; one that exists at the start was left by a killed run."""

SECONDS = 60
"""Timeout for a server that sends nothing."""

PLACES = {"x86_64": "x64", "aarch64": "aarch64"}
"""Names of the directories of the published archives."""

MACHINES = {62: "x86_64", 183: "aarch64"}
"""Machine numbers in ELF headers (EM_X86_64, EM_AARCH64 in elf.h)."""

Archive = Mapping[str, Any]


def name_of(archive: Archive) -> str:
    """Return the name of a version's directory."""
    return f"{archive['version']}-{archive['architecture']}"


def address(source: str, archive: Archive) -> str:
    """Return the URL of an archive.

    >>> address("https://example.org/bin", {"version": "1.10.5", "architecture": "x86_64"})
    'https://example.org/bin/linux/x64/1.10/julia-1.10.5-linux-x86_64.tar.gz'
    """
    version, architecture = archive["version"], archive["architecture"]
    series = ".".join(version.split(".")[:2])
    return f"{source}/linux/{PLACES[architecture]}/{series}/julia-{version}-linux-{architecture}.tar.gz"


def links(archives: list[Archive]) -> dict[str, str]:
    """Return the targets of the default links: the first archive of each architecture."""
    return {f"default-{archive['architecture']}": name_of(archive) for archive in reversed(archives)}


def machine_of(program: pathlib.Path) -> str | None:
    """Return the architecture of a program, or None if it is not an ELF file.

    >>> machine_of(pathlib.Path("/dev/null"))
    """
    with program.open("rb") as file:
        start = file.read(20)
    if len(start) < 20 or start[:4] != b"\x7fELF":
        return None
    number = int.from_bytes(start[18:20], "little" if start[5] == 1 else "big")
    return MACHINES.get(number, f"the machine {number} of elf.h")


class Installation:
    """The directory of the versions."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.directory = pathlib.Path(module.params["directory"])
        self.archives: list[Archive] = module.params["archives"]
        self.missing = [archive for archive in self.archives if not (self.directory / name_of(archive)).is_dir()]

    def wrong_links(self) -> dict[str, str]:
        """Return the links that are missing or have another target."""
        wanted = links(self.archives)
        return {name: to for name, to in wanted.items() if _target(self.directory / name) != to}

    def install(self, archive: Archive) -> None:
        """Install one version; if that fails, remove everything unpacked so far."""
        stage = pathlib.Path(tempfile.mkdtemp(dir=self.directory, prefix=STAGE))
        try:
            packed = self.fetched(archive, stage)
            self.compare(archive, packed)
            unpacked = stage / "julia"
            unpacked.mkdir(mode=0o755)
            command = ["tar", "--extract", "--gzip", "--file", str(packed), "--directory", str(unpacked)]
            # Whatever the owner in the archive, root owns the files here, and all users can read them.
            command += ["--strip-components=1", "--no-same-owner", "--no-same-permissions"]
            code, _, err = self.module.run_command(command)
            if code:
                self.refuse(archive, f"cannot be unpacked: {err.strip()}")
            if not os.access(unpacked / "bin" / "julia", os.X_OK):
                self.refuse(archive, "has no program bin/julia; take the archive that Julia publishes")
            seen = machine_of(unpacked / "bin" / "julia")
            if seen not in (None, archive["architecture"]):
                self.refuse(archive, f"has a program for {seen}; declare that architecture, or take the other archive")
            # Otherwise, after a power cut, the directory can have its name but not its files.
            self.module.run_command(["sync", "--file-system", str(unpacked)], check_rc=True)
            unpacked.rename(self.directory / name_of(archive))
        finally:
            shutil.rmtree(stage)

    def fetched(self, archive: Archive, stage: pathlib.Path) -> pathlib.Path:
        """Return the path of the archive on this machine."""
        if archive.get("file"):
            return pathlib.Path(archive["file"])
        packed = stage / "archive.tar.gz"
        url = address(self.module.params["source"], archive)
        try:
            with open_url(url, timeout=SECONDS) as answer, packed.open("wb") as file:
                shutil.copyfileobj(answer, file)
        except Exception as error:
            self.refuse(archive, f"cannot be fetched from {url}: {error}; fetch it elsewhere and name it as `file`")
        return packed

    def compare(self, archive: Archive, packed: pathlib.Path) -> None:
        """Refuse an archive with the wrong checksum."""
        with packed.open("rb") as file:
            digest = hashlib.sha256()
            while block := file.read(1 << 20):
                digest.update(block)
        seen = digest.hexdigest()
        if seen != archive["sha256"]:
            self.refuse(archive, f"has the SHA-256 {seen}, but {archive['sha256']} is declared; nothing was unpacked")

    def refuse(self, archive: Archive, reason: str) -> None:
        """End the module."""
        self.module.fail_json(msg=f"Julia {archive['version']} for {archive['architecture']} {reason}")

    def link(self, name: str, to: str) -> None:
        """Point a link to a version, atomically."""
        new = self.directory / f"{STAGE}{name}"
        new.symlink_to(to)
        new.replace(self.directory / name)


def _target(link: pathlib.Path) -> str | None:
    return os.readlink(link) if link.is_symlink() else None


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "source": {"type": "str", "required": True},
            "archives": {"type": "list", "elements": "dict", "required": True},
            "look": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    try:
        found = Installation(module)
        missing, wrong = [name_of(archive) for archive in found.missing], found.wrong_links()
        done = [*(f"{found.directory}/{name}" for name in missing)]
        done += [f"{found.directory}/{name} -> {to}" for name, to in sorted(wrong.items())]
        if not (module.check_mode or module.params["look"]):
            depot = found.directory / "depot"
            depot.mkdir(parents=True, exist_ok=True)
            for left in found.directory.glob(f"{STAGE}*"):
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
            for archive in found.missing:
                found.install(archive)
            for name, to in wrong.items():
                found.link(name, to)
    except OSError as error:
        module.fail_json(msg=f"Julia cannot be installed: {error}")
    module.exit_json(changed=bool(done), missing=missing, diff=[{"prepared": "\n".join(done)}] if done else [])


if __name__ == "__main__":
    main()
