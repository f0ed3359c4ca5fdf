# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The MUNGE key of a node, and whether the daemon has read it."""

from __future__ import annotations

import os
import pathlib
import pwd
import time

from ansible.module_utils.slurmstead.reach import durable

KEY = pathlib.Path("/etc/munge/munge.key")
USER = "munge"

SLACK = 0.05
"""Error of a process's start time in seconds: proc(5) counts hundredths."""


MODE = 0o400
"""Mode of the key: only its owner can read it (munge(7))."""


def is_there(path: pathlib.Path = KEY) -> bool:
    """Say whether there is a key. A power cut can leave an empty file, with which munged does not start."""
    return path.is_file() and path.stat().st_size > 0


def is_installed(user: str = USER) -> bool:
    """Say whether this node has the account of the daemon."""
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def is_right(content: bytes, path: pathlib.Path = KEY, user: str = USER) -> bool:
    """Say whether a key is installed, readable by the daemon alone."""
    if path.is_symlink() or not path.is_file():
        return False
    status, account = path.stat(), pwd.getpwnam(user)
    owned = (status.st_uid, status.st_gid) == (account.pw_uid, account.pw_gid)
    return owned and status.st_mode & 0o7777 == MODE and path.read_bytes() == content


def write(content: bytes, path: pathlib.Path = KEY, user: str = USER) -> None:
    """Install a key atomically; only its owner can read it at any moment."""
    account = pwd.getpwnam(user)
    durable.write(path, content, MODE, account.pw_uid, account.pw_gid)


def started(pid: int) -> float | None:
    """Return when a process started, in seconds since boot; None without such a process."""
    try:
        fields = pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def has_read(pid: int, path: pathlib.Path = KEY) -> bool:
    """Say whether a daemon, which reads the key when it starts, started after the key was installed.

    Compares both in seconds since boot: a board without a battery-backed clock starts its daemons with a wrong date.
    """
    since = started(pid)
    if since is None:
        return False
    age = time.time() - path.stat().st_ctime
    return since + SLACK > time.clock_gettime(time.CLOCK_BOOTTIME) - age


def touch(path: pathlib.Path = KEY) -> None:
    """Set the key's change time to now, so that a key from the future is not newer than every daemon (chown(2))."""
    status = path.stat()
    os.chown(path, status.st_uid, status.st_gid)
