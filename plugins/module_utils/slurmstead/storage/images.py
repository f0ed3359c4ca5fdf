# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""File systems in a file of the machine's own disk (loop(4)), for machines without a disk to spare.

Their space is reserved when they are created, so neither they nor the file system around them can fill the other.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ansible.module_utils.slurmstead.storage import units
from ansible.module_utils.slurmstead.storage.disks import DiskError, human_size
from ansible.module_utils.slurmstead.storage.filesystems import MINIMUM

DIRECTORY = Path("/var/lib/slurmstead")
"""Directory of the images."""

PART = 2
"""A size of `auto` is the free space divided by this number."""

RESERVE = 2**30
"""Bytes that a declared size must leave free."""

UNITS = {"M": 2**20, "G": 2**30, "T": 2**40}
FORM = r"auto|[1-9][0-9]*[MGT]"
"""A size: `auto`, or a number and its unit."""


def path(mount_point: str) -> Path:
    """Return the image whose file system is mounted at a path.

    >>> str(path("/srv/my-share"))
    '/var/lib/slurmstead/srv-myx2dshare.img'
    """
    return DIRECTORY / f"{units.escape(mount_point)}.img".replace("\\", "")


def part(image: Path) -> Path:
    """Return the file in which an image is created. An interrupted creation leaves it, and the next one replaces it."""
    return image.with_suffix(".part")


def declared_bytes(size: str) -> int | None:
    """Return a declared size in bytes, None for `auto`.

    >>> declared_bytes("200G"), declared_bytes("auto")
    (214748364800, None)
    """
    return None if size == "auto" else int(size[:-1]) * UNITS[size[-1]]


def wanted_bytes(size: str, present: int | None, free: int, kind: str) -> int:
    """Return the size in bytes that an image must have.

    :param size: as declared; `auto` keeps the size of an image that exists
    :param present: size of the image in bytes, None if it does not exist
    :param free: free space around it in bytes
    :param kind: type of its file system
    :raises DiskError: it would not fit, or would have to shrink
    """
    given = declared_bytes(size)
    result = (free // PART >> 20 << 20 if present is None else present) if given is None else given
    if present is not None and result < present:
        raise DiskError(
            f"expected a size of at least {present >> 20}M, which the file system has, found {size}: "
            "file systems grow, but do not shrink"
        )
    if result < MINIMUM[kind]:
        raise DiskError(
            f"expected at least {human_size(MINIMUM[kind])} for {kind}, found {size} ({human_size(result)}), because "
            f"{human_size(free)} are free: free more space, or declare a disk"
        )
    more = result - (present or 0)
    if given is not None and more and more + RESERVE > free:
        raise DiskError(
            f"expected {human_size(more + RESERVE)} of free space for the size {size}, found {human_size(free)}: "
            "declare less, or free more space"
        )
    return result


def free_bytes(directory: Path) -> int:
    """Return the free space in bytes of the file system that has a directory, which may not exist yet."""
    while not directory.exists():
        directory = directory.parent
    state = os.statvfs(directory)
    return state.f_bavail * state.f_frsize


def is_in_fstab(mount_point: str, text: str) -> bool:
    r"""Say whether an administrator mounts a file system there; `text` is that of fstab(5).

    >>> is_in_fstab("/srv/share", "# disks\nUUID=1 /srv/share ext4 defaults 0 2\n")
    True
    """
    pattern = rf"^[^#\s]\S*\s+{re.escape(mount_point)}/?\s"
    return re.search(pattern, text, re.MULTILINE) is not None
