# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A file system ext4 inside an image, read and changed without mounting it (debugfs(8), e2fsck(8)).

debugfs exits with 0 whatever fails, so everything that was written is read again.
"""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ansible.module_utils.slurmstead.board.account import File
from ansible.module_utils.slurmstead.board.partitions import ImageError

MAGIC = (1080, b"\x53\xef")
"""Offset and bytes of the superblock's magic number."""


class Entry(NamedTuple):
    """What a directory says of a file."""

    mode: int
    uid: int
    gid: int


PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
"""Where programs are: an ordinary user's PATH may lack the directories of root."""


class Ext4:
    """The file system that begins at an offset of an image; the directory of the image is used for files."""

    def __init__(self, image: pathlib.Path, offset: int) -> None:
        self.directory, self.name = image.parent, f"{image.name}?offset={offset}"

    def read(self, path: str) -> bytes:
        """Return the content of a file; of one that does not exist, nothing."""
        return self._ask(f"cat {path}")

    def names(self, directory: str) -> dict[str, Entry]:
        """Return the entries of a directory; of one that does not exist, nothing."""
        found = {}
        for line in self._ask(f"ls -p {directory}").decode(errors="replace").splitlines():
            # /inode/mode/uid/gid/name/size/
            words = line.split("/")
            if len(words) > 6 and words[1] != "0":
                found[words[5]] = Entry(int(words[2], 8), int(words[3]), int(words[4]))
        return found

    def change(self, files: Mapping[str, File], removed: Sequence[str]) -> None:
        """Write files and remove others.

        :raises ImageError: the file system does not have them afterwards
        """
        self.check(repair=True)
        lines = [f"rm {path}" for path in removed if _is_file(self._entry(path))]
        for number, (path, file) in enumerate(files.items()):
            old = self._entry(path)
            if file.content is None:
                lines += [] if old else [f"mkdir {path}"]
            else:
                (self.directory / f"file{number}").write_bytes(_bytes(file.content))
                lines += [*([f"rm {path}"] if old else []), f"write file{number} {path}"]
            kind = stat.S_IFREG if file.content is not None else stat.S_IFDIR
            for field, value in (("mode", f"0{kind | file.mode:o}"), ("uid", file.uid), ("gid", file.gid)):
                lines.append(f"set_inode_field {path} {field} {value}")
        (self.directory / "commands").write_text("".join(f"{line}\n" for line in lines))
        done = self._run("debugfs", "-w", "-f", "commands", self.name)
        wrong = [path for path in removed if _is_file(self._entry(path))]
        wrong += [path for path, file in files.items() if not self._has(path, file)]
        if wrong:
            said = [line for line in done.stderr.decode(errors="replace").splitlines() if ":" in line]
            raise ImageError(f"{wrong[0]} cannot be written to its file system: {'; '.join(said[-2:])}")
        self.check(repair=False)

    def check(self, *, repair: bool) -> None:
        """Check the file system; with `repair`, replay its journal and make safe corrections.

        :raises ImageError: it is damaged
        """
        done = self._run("e2fsck", "-fp" if repair else "-fn", self.name)
        if done.returncode > (1 if repair else 0):
            raise ImageError(f"its file system is damaged: {done.stdout.decode(errors='replace').strip()[-300:]}")

    def _has(self, path: str, file: File) -> bool:
        found = self._entry(path)
        if found is None or (stat.S_IMODE(found.mode), found.uid, found.gid) != (file.mode, file.uid, file.gid):
            return False
        return file.content is None or self.read(path) == _bytes(file.content)

    def _entry(self, path: str) -> Entry | None:
        directory, _, name = path.rpartition("/")
        return self.names(directory or "/").get(name)

    def _ask(self, request: str) -> bytes:
        return self._run("debugfs", "-R", request, self.name).stdout

    def _run(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PATH": PATH, "DEBUGFS_PAGER": "cat", "LC_ALL": "C"}
        return subprocess.run(
            command, cwd=self.directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )


def _is_file(entry: Entry | None) -> bool:
    return entry is not None and stat.S_ISREG(entry.mode)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
