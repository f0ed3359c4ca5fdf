# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Atomic writes: after a power cut, a file is either complete or absent (rename(2), fsync(2), ext4(5))."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Callable


def write(
    path: pathlib.Path,
    content: bytes,
    mode: int = 0o644,
    uid: int = -1,
    gid: int = -1,
    prove: Callable[[pathlib.Path], object] | None = None,
) -> None:
    """Replace a file atomically. Until then, only the owner can read the new content.

    :param uid: owner; -1 leaves it as it is (chown(2)), and so does `gid`
    :param prove: called with the path of the new content; if it raises, the old file stays
    :raises OSError: the content could not be written; the old file stays
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchown(handle, uid, gid)
            os.fchmod(handle, mode)
            os.fsync(handle)
        if prove:
            prove(pathlib.Path(name))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    sync(path.parent)


def link(path: pathlib.Path, target: str) -> None:
    """Create a symbolic link, or replace a link or file with it, atomically."""
    partial = path.with_name(f".{path.name}.link")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(path)
    sync(path.parent)


def sync(path: pathlib.Path) -> None:
    """Wait until a file or directory is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
