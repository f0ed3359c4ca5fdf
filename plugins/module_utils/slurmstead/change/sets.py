# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Sets of configuration files; exactly one set is active at any moment, as a whole.

Below /etc/slurm, `slurm.conf` and the other managed files are links into `slurmstead/live`, itself a link to the active
set. Publishing renames that one link, so no reader and no power cut ever sees half a set:

    slurm.conf -> slurmstead/live/slurm.conf
    slurmstead/live -> 2026-11-21T10.15.00
    slurmstead/good -> 2026-11-21T10.15.00.good     a copy of the last set that was proven

`good` is a copy, because administrators may edit the active files. If `good` is not a copy of `live`, a run was
interrupted between publishing and proof.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.slurmstead.reach import durable

ETC = pathlib.Path("/etc/slurm")

LIMIT = 1 << 20
"""Larger files, in bytes, are not configuration files."""

SUFFIXES = (".conf", ".lua", ".yaml")
"""Names of files that slurmctld may read in addition to slurm.conf; never key files."""

SLURMDBD = "slurmdbd.conf"
"""Only slurmdbd reads it, and it holds the password of the database: it is in no set, and in no copy of a set."""


class Store:
    """The sets below a directory."""

    def __init__(self, directory: pathlib.Path = ETC) -> None:
        self.directory = directory
        self.sets = directory / "slurmstead"
        self.live = self.sets / "live"
        self.good = self.sets / "good"

    def seen(self) -> dict[str, str]:
        """Return the text of each configuration file that Slurm finds, by name."""
        return _texts(self.directory)

    def proven(self) -> dict[str, str] | None:
        """Return the last set that was proven to work."""
        return _texts(self.good) if self.good.is_dir() else None

    @property
    def is_proven(self) -> bool:
        """Return whether the active set is the proven one; False if no set was proven."""
        if not (self.live.is_symlink() and self.good.is_symlink()):
            return False
        live, good = os.readlink(self.live), os.readlink(self.good)
        return good == f"{live}.good"

    @property
    def is_edited(self) -> bool:
        """Return whether the active set was edited in place."""
        return self.is_proven and _texts(self.live) != self.proven()

    def managed(self) -> frozenset[str]:
        """Return the names of the links into the active set."""
        names = (path.name for path in self.directory.glob("*") if path.is_symlink())
        return frozenset(name for name in names if os.readlink(self.directory / name) == f"slurmstead/live/{name}")

    def differs(self, files: Mapping[str, str]) -> bool:
        """Say whether the files that Slurm finds differ from these, or are not links into the active set."""
        seen = self.seen()
        return self.managed() != files.keys() or any(seen.get(name) != text for name, text in files.items())

    def edited_at(self, names: Iterable[str]) -> float:
        """Return when the newest of the files was written there (seconds since 1970).

        Uses the inode's change time: `cp -a` copies a file's modification time, which can then be too old.
        """
        paths = (self.directory / name for name in names)
        return max((path.stat().st_ctime for path in paths if path.exists()), default=0.0)

    def publish(self, files: Mapping[str, str]) -> str:
        """Activate a set. Return where replaced foreign files are kept, if there were any.

        Plain files are first moved into a set. After every step, Slurm has either the old set or the new one.
        """
        self.sets.mkdir(mode=0o755, exist_ok=True)
        names = files.keys() | self.managed()
        plain = {name for name in names - self.managed() if os.path.lexists(self.directory / name)}
        kept = self._adopt(names) if plain else str(self._write(_texts(self.live), ".edited")) if self.is_edited else ""
        new = self._write(files)
        for name in files.keys() - self.managed():
            # A dangling link: the file stays absent until the set is active.
            durable.link(self.directory / name, f"slurmstead/live/{name}")
        durable.link(self.live, new.name)
        for name in names - files.keys():
            (self.directory / name).unlink(missing_ok=True)
        durable.sync(self.directory)
        return kept

    def _adopt(self, names: Iterable[str]) -> str:
        """Turn plain files into links to a set of the same texts."""
        found = self._write({name: text for name, text in self.seen().items() if name in set(names)}, ".found")
        durable.link(self.live, found.name)
        for name in names:
            durable.link(self.directory / name, f"slurmstead/live/{name}")
        return str(found)

    def _write(self, files: Mapping[str, str], suffix: str = "") -> pathlib.Path:
        """Write a new set; it gets its name only when it is completely on the disk."""
        stamp, number = time.strftime("%Y-%m-%dT%H.%M.%S"), 0
        name = f"{stamp}{suffix}"
        while (self.sets / name).exists():
            number += 1
            name = f"{stamp}-{number}{suffix}"
        partial = self.sets / f".{name}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o755)
        for file, text in files.items():
            durable.write(partial / file, text.encode(errors="surrogateescape"))
        partial.chmod(0o755)
        durable.sync(partial)
        partial.rename(self.sets / name)
        durable.sync(self.sets)
        return self.sets / name

    def prove(self) -> None:
        """Keep the active set as the last good one, and delete sets that are not needed."""
        live = os.readlink(self.live)
        copy = self.sets / f"{live}.good"
        if not copy.exists():
            partial = self.sets / f".{live}.good"
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(self.sets / live, partial)
            for path in partial.iterdir():
                durable.sync(path)
            durable.sync(partial)
            partial.rename(copy)
        durable.link(self.good, copy.name)
        needed = {"live", "good", live, os.readlink(self.good)}
        edited = sorted(path.name for path in self.sets.iterdir() if path.suffix in (".edited", ".found"))
        for path in self.sets.iterdir():
            if path.is_dir() and not path.is_symlink() and path.name not in {*needed, *edited[-3:]}:
                shutil.rmtree(path)

    def restore(self) -> bool:
        """Activate a copy of the last good set; return False if there is no such set."""
        proven = self.proven()
        if proven is None:
            return False
        for name in proven:
            if not (self.directory / name).is_symlink():
                durable.link(self.directory / name, f"slurmstead/live/{name}")
        durable.link(self.live, self._write(proven).name)
        self.prove()
        return True

    def recall(self, name: str) -> dict[str, Any]:
        """Return the note of a name."""
        try:
            noted = json.loads((self.sets / f"{name}.json").read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return noted if isinstance(noted, dict) else {}

    def note(self, name: str, what: Mapping[str, Any]) -> None:
        """Store a note for the next run; nothing removes it."""
        path = self.sets / f"{name}.json"
        if not what:
            path.unlink(missing_ok=True)
            return
        self.sets.mkdir(mode=0o755, exist_ok=True)
        durable.write(path, json.dumps(what, sort_keys=True).encode())


def _texts(directory: pathlib.Path) -> dict[str, str]:
    """Return the configuration files in a directory, links followed."""
    found = {}
    for path in sorted(directory.glob("*")):
        if path.name != SLURMDBD and path.suffix in SUFFIXES and path.is_file() and path.stat().st_size <= LIMIT:
            found[path.name] = path.read_text(errors="surrogateescape")
    return found
