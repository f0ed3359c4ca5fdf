# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Slurmstead's own directory in /run: locks, and notes that a reboot may forget.

Any user who can open a lock file can hold its lock (flock(2)), and any user can be the first to create a name in a
world-writable directory. So only root can enter this one.
"""

from __future__ import annotations

import os
import pathlib
import stat

PATH = pathlib.Path("/run/slurmstead")


def private(path: pathlib.Path = PATH) -> pathlib.Path:
    """Return a directory that only this user can enter; create it, or close one that is open to others.

    :raises OSError: another user owns it, it is not a directory, or it cannot be created
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = path.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise PermissionError(f"{path} is not a directory of {os.geteuid()}: remove it and run the same command again")
    if stat.S_IMODE(seen.st_mode) != 0o700:
        path.chmod(0o700)
    return path


def open_lock(path: pathlib.Path) -> int:
    """Open a lock file in a private directory, for flock(2); return its descriptor.

    :raises OSError: see `private`
    """
    private(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
