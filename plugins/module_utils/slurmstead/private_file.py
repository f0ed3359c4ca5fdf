# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Files with a secret: there as a whole or not at all, and never readable for anybody but their owner."""

from __future__ import annotations

import os
import pathlib
import tempfile

MODE = 0o400


def write(path: pathlib.Path, content: bytes, uid: int = -1, gid: int = -1) -> None:
    """Put a file in its place at once, on the disk; -1 leaves user or group as they are (chown(2))."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchown(handle, uid, gid)
            os.fchmod(handle, MODE)
            file.flush()
            os.fsync(handle)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
