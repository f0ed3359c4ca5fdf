# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Owner and mode of the configuration files that an administrator wrote: read for an archive, and restored from it."""

from __future__ import annotations

import grp
import pathlib
import pwd
import stat
from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.slurmstead.reach import durable

PLAIN = ("root", "root", 0o644)
"""What an archive without owners (before 0.1) says about a file."""


def read(path: pathlib.Path) -> tuple[str, str, int]:
    """Return user, group and mode of a file; an ID without a name stays a number.

    :raises OSError: the file cannot be read
    """
    seen = path.stat()
    user = _named(lambda: pwd.getpwuid(seen.st_uid).pw_name, seen.st_uid)
    return user, _named(lambda: grp.getgrgid(seen.st_gid).gr_name, seen.st_gid), stat.S_IMODE(seen.st_mode)


def write(path: pathlib.Path, content: bytes, owned: tuple[str, str, int]) -> None:
    """Write a file with an owner and mode; an unknown user or group gets no access, and the file becomes root's.

    :raises OSError: the file cannot be written
    """
    user, group, mode = owned
    uid, gid = _number(lambda: pwd.getpwnam(user).pw_uid, user), _number(lambda: grp.getgrnam(group).gr_gid, group)
    if gid < 0:
        mode &= ~stat.S_IRWXG
    durable.write(path, content, mode, uid, gid)


def of(manifest: Mapping[str, Any], name: str, secret: bool = False) -> tuple[str, str, int]:
    """Return what a manifest says about a file of /etc/slurm; without a word, a secret is readable only by root.

    >>> of({"owned": {"a.conf": ["slurm", "slurm", 384]}}, "a.conf"), of({}, "b.conf"), of({}, "c.conf", secret=True)
    (('slurm', 'slurm', 384), ('root', 'root', 420), ('root', 'root', 384))
    """
    user, group, mode = manifest.get("owned", {}).get(name, PLAIN)
    return str(user), str(group), 0o600 if secret and name not in manifest.get("owned", {}) else int(mode)


def _named(look_up: Callable[[], str], number: int) -> str:
    try:
        return look_up()
    except KeyError:
        return str(number)


def _number(look_up: Callable[[], int], name: str) -> int:
    """Return the number of a name; -1 if it is unknown, which leaves the owner as it is (chown(2))."""
    try:
        return look_up()
    except KeyError:
        return int(name) if name.isdigit() else -1
