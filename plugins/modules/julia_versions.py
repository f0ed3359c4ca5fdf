#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Put versions of Julia side by side into a directory."""

from __future__ import annotations

DOCUMENTATION = r"""
module: julia_versions
short_description: Put versions of Julia side by side into a directory
description:
  - Brings archives of Julia, compares their checksums before anything is unpacked, and gives each version its name when
    all of it is on the disk. A version that is there is not looked at again, and none is removed.
  - The first archive of an architecture is what the link C(default-ARCHITECTURE) leads to.
  - The archives that are given as files stand on the controlling computer, and travel only when they are needed.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  directory: {type: path, required: true, description: Where the versions are put.}
  source: {type: str, required: true, description: Address below which the archives are published.}
  archives:
    description: The versions, each with I(version), I(architecture), I(sha256) and, if it is not fetched, I(file).
    type: list
    elements: dict
    required: true
  look: {type: bool, default: false, description: Only say what is missing.}
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
missing: {description: Names of the versions that were not there., type: list, elements: str, returned: always}
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
"""How directories begin in which something is unpacked; one that is there at the start was left by a run that ended."""

SECONDS = 60
"""How long a server may say nothing."""

PLACES = {"x86_64": "x64", "aarch64": "aarch64"}
"""How the directories of published archives are called."""

MACHINES = {62: "x86_64", 183: "aarch64"}
"""How programs of ELF number the processors that they are for (EM_X86_64, EM_AARCH64 in elf.h)."""

Archive = Mapping[str, Any]


def name_of(archive: Archive) -> str:
    """Return the name of a version's directory."""
    return f"{archive['version']}-{archive['architecture']}"


def address(source: str, archive: Archive) -> str:
    """Return where an archive is published.

    >>> address("https://example.org/bin", {"version": "1.10.5", "architecture": "x86_64"})
    'https://example.org/bin/linux/x64/1.10/julia-1.10.5-linux-x86_64.tar.gz'
    """
    version, architecture = archive["version"], archive["architecture"]
    series = ".".join(version.split(".")[:2])
    return f"{source}/linux/{PLACES[architecture]}/{series}/julia-{version}-linux-{architecture}.tar.gz"


def links(archives: list[Archive]) -> dict[str, str]:
    """Return where the links of the default versions lead; the first archive of an architecture counts."""
    return {f"default-{archive['architecture']}": name_of(archive) for archive in reversed(archives)}


def machine_of(program: pathlib.Path) -> str | None:
    """Return which architecture a program is for, or None where its first bytes do not say that.

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
        """Return the links that lead elsewhere or are not there."""
        wanted = links(self.archives)
        return {name: to for name, to in wanted.items() if _target(self.directory / name) != to}

    def install(self, archive: Archive) -> None:
        """Put one version in place; what was unpacked so far goes when it fails."""
        stage = pathlib.Path(tempfile.mkdtemp(dir=self.directory, prefix=STAGE))
        try:
            packed = self.fetched(archive, stage)
            self.compare(archive, packed)
            unpacked = stage / "julia"
            unpacked.mkdir(mode=0o755)
            command = ["tar", "--extract", "--gzip", "--file", str(packed), "--directory", str(unpacked)]
            # Whatever its owner in the archive, here root owns it, and all users can read it.
            command += ["--strip-components=1", "--no-same-owner", "--no-same-permissions"]
            code, _, err = self.module.run_command(command)
            if code:
                self.refuse(archive, f"cannot be unpacked: {err.strip()}")
            if not os.access(unpacked / "bin" / "julia", os.X_OK):
                self.refuse(archive, "has no program bin/julia; take the archive that Julia publishes")
            seen = machine_of(unpacked / "bin" / "julia")
            if seen not in (None, archive["architecture"]):
                self.refuse(archive, f"has a program for {seen}; declare that architecture, or take the other archive")
            # Else a machine that loses power now can come back with the name and without the files.
            self.module.run_command(["sync", "--file-system", str(unpacked)], check_rc=True)
            unpacked.rename(self.directory / name_of(archive))
        finally:
            shutil.rmtree(stage)

    def fetched(self, archive: Archive, stage: pathlib.Path) -> pathlib.Path:
        """Return the archive as a file on this machine."""
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
        """Refuse an archive that is not the one that was meant."""
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
        """Let a link lead to a version, at once."""
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
