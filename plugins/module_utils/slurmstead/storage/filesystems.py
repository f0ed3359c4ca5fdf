# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Creating, checking, growing and measuring ext4 and XFS, and when a file system may be created."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Mapping

from ansible.module_utils.slurmstead.storage.disks import DiskError

MINIMUM = {"ext4": 64 * 2**20, "xfs": 320 * 2**20}
"""Minimum disk size of a file system in bytes (mkfs.xfs(8): 300 MiB, plus LVM's overhead)."""

SLACK = 16 * 2**20
"""Bytes at the end that a file system may leave unused: it cannot use a last group or extent that is too short."""

XFS_IOC_FSGEOMETRY_V1 = 0x80705864
"""_IOR('X', 100, struct xfs_fsop_geom_v1), 112 bytes; the same on amd64 and arm64 (fs/xfs/libxfs/xfs_fs.h)."""


def step(kind: str, device: str, found: Mapping[str, str], unfinished: str | None) -> str:
    """Return what to do with the file system of our logical volume: "keep" it, "make" it, or "inspect" it first.

    `found` is libblkid's result (see content.probe), `unfinished` as in LogicalVolume. A file system is created only in
    a volume that has had the mark `unfinished` since its creation; the mark is removed when the file system is
    complete.
    Raises DiskError if there is other content.
    """
    seen = found.get("TYPE") or found.get("PTTYPE")
    if seen == kind:
        return "inspect" if unfinished and found.get("UUID") == unfinished else "keep"
    if unfinished and not found:
        return "make"
    raise DiskError(
        f"{device}: expected the file system {kind}, found {seen or 'nothing that libblkid knows'}. Nothing was "
        f"written to it. Declare that file system, or, if its data are not needed, remove it by hand "
        f"(`wipefs --all {device} && lvremove {device}`), and the next run makes it again"
    )


def make_command(kind: str, device: str, identity: str, again: bool) -> list[str]:
    """Return the mkfs command for a UUID; it opens the device exclusively. `again`: overwrite an interrupted one."""
    if kind == "ext4":
        return ["mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard", "-U", identity, device]
    return ["mkfs.xfs", "-q", "-K", "-m", f"uuid={identity}", *(["-f"] if again else []), device]


def check_command(kind: str, device: str) -> list[str]:
    """Return a read-only command that fails unless a file system is complete."""
    return ["e2fsck", "-f", "-n", device] if kind == "ext4" else ["xfs_repair", "-n", device]


def grow_command(kind: str, device: str, path: str) -> list[str]:
    """Return the command that grows a mounted file system to fill its device."""
    return ["resize2fs", device] if kind == "ext4" else ["xfs_growfs", path]


def head(device: str) -> bytes:
    """Return the first 4096 bytes of a device."""
    with open(device, "rb") as file:
        return file.read(4096)


def was_mounted(kind: str, head: bytes) -> bool:
    """Say whether a file system was ever mounted, from the first 4096 bytes of its device.

    ext4: s_mtime of the superblock at 1024 (Documentation/filesystems/ext4/super.rst). XFS: sb_lsn (xfs_format.h),
    which mkfs.xfs leaves 0 and the first unmount sets.
    """
    return any(head[1024 + 0x2C : 1024 + 0x30] if kind == "ext4" else head[240:248])


def is_in_progress(kind: str, head: bytes) -> bool:
    """Say whether mkfs.xfs was killed before its last write (sb_inprogress); mkfs.ext4 has no such mark."""
    return kind == "xfs" and head[126] != 0


def size(kind: str, device: str, path: str) -> int:
    """Return the size in bytes of a file system that is mounted at a path."""
    return ext4_size(head(device)) if kind == "ext4" else xfs_size(path)


def ext4_size(head: bytes) -> int:
    """Return the size in bytes of the ext4 file system whose device begins with `head` (at least 4096 bytes)."""
    low, block, high = (int.from_bytes(head[1024 + at : 1028 + at], "little") for at in (0x4, 0x18, 0x150))
    return ((high << 32) + low) << (10 + block)


def xfs_size(path: str) -> int:
    """Return the size in bytes of the XFS that is mounted at a path."""
    directory = os.open(path, os.O_RDONLY)
    try:
        geometry = bytearray(112)
        fcntl.ioctl(directory, XFS_IOC_FSGEOMETRY_V1, geometry)
    finally:
        os.close(directory)
    block, *_, blocks = struct.unpack_from("=8IQ", geometry)
    return int(block * blocks)
