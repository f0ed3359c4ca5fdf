# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A copy of an image with the account inside. The original is only read."""

from __future__ import annotations

import lzma
import os
import pathlib
import shutil
import stat
from collections.abc import Iterator
from typing import IO, NamedTuple

from ansible.module_utils.slurmstead.board import account
from ansible.module_utils.slurmstead.board.ext4 import MAGIC, PATH, Ext4
from ansible.module_utils.slurmstead.board.partitions import HEAD, ImageError, Partition, end, partitions

BLOCK = 2**20
XZ = b"\xfd7zXZ\0"
GZIP, ZIP, ZSTD = b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd"


class Look(NamedTuple):
    """What the beginning of an image says."""

    partitions: list[Partition]
    size: int
    """bytes that it has; if it is packed, at least has, unpacked"""
    packed: bool


def check(source: pathlib.Path, target: pathlib.Path) -> list[Partition]:
    """Return the partitions of an image that is to be copied. Writes nothing.

    :raises ImageError: it is not an image, or cannot be copied there
    """
    if os.path.lexists(target):
        raise ImageError(f"{target} exists already")
    if not target.parent.is_dir():
        raise ImageError(f"there is no directory {target.parent}")
    missing = [name for name in ("debugfs", "e2fsck") if not shutil.which(name, path=PATH)]
    if missing:
        raise ImageError(f"this computer has no {missing[0]}; install the package e2fsprogs")
    found, size, _ = look(source)
    free = shutil.disk_usage(target.parent).free
    if free < size:
        raise ImageError(f"{target.parent} has {free / 1e9:.1f} GB free, but the image has {size / 1e9:.1f} GB")
    return found


def look(source: pathlib.Path) -> Look:
    """Return what an image is, from its beginning.

    :raises ImageError: it is not an image of a disk
    """
    try:
        with _open(source) as file:
            head = file.read(HEAD)
            packed = isinstance(file, lzma.LZMAFile)
        if head.startswith((GZIP, ZIP, ZSTD)):
            raise ImageError("it is packed; unpack it, or pack it with xz")
        found = partitions(head)
        size = end(found) if packed else source.stat().st_size
        if size < end(found):
            raise ImageError(f"it has {size} bytes, but its partitions {end(found)}; download it again")
    except (OSError, EOFError, lzma.LZMAError, ImageError) as error:
        raise ImageError(f"{source} cannot be used: {error}") from None
    return Look(found, size, packed)


def prepare(source: pathlib.Path, target: pathlib.Path, work: pathlib.Path, wanted: account.Wanted) -> str:
    """Make a copy of an image with the account inside; return the name of the system in it.

    :param work: an empty directory beside the target, which the caller removes
    :raises ImageError: it cannot be made; there is no target then
    """
    found = check(source, target)
    copy = work / "image"
    try:
        _copy(source, copy)
        name = _change(copy, found, wanted)
    except (OSError, EOFError, lzma.LZMAError, ImageError, account.UnsuitableError) as error:
        raise ImageError(f"no image can be made of {source}: {error}") from None
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    try:
        # A link never replaces what appeared there meanwhile.
        os.link(copy, target)
    except OSError as error:
        raise ImageError(f"{target} cannot be made: {error}") from None
    return name


def _change(image: pathlib.Path, found: list[Partition], wanted: account.Wanted) -> str:
    roots = [Ext4(image, one.start) for one in _ext4(image, found)]
    roots = [one for one in roots if {"passwd", "shadow", "os-release"} <= one.names("/etc").keys()]
    if len(roots) != 1:
        raise ImageError(
            f"it has {len(roots) or 'no'} partitions with a Linux system on ext4 that e2fsprogs of this computer can "
            "read; one is needed"
        )
    (root,) = roots
    texts = {path: root.read(path).decode(errors="surrogateescape") for path in account.READ}
    names = {directory: list(root.names(directory)) for directory in account.LISTED}
    planned = account.changes(wanted, texts, names)
    root.change(planned.files, planned.removed)
    release = root.read("/usr/lib/os-release").decode(errors="replace").splitlines()
    described = next((line for line in release if line.startswith("PRETTY_NAME=")), "")
    return described.partition("=")[2].strip('"') or "a Linux system"


def _ext4(image: pathlib.Path, found: list[Partition]) -> Iterator[Partition]:
    offset, magic = MAGIC
    with image.open("rb") as file:
        for one in found:
            file.seek(one.start + offset)
            if file.read(len(magic)) == magic:
                yield one


def _open(source: pathlib.Path) -> IO[bytes]:
    """Open an image, packed by xz or not; a pipe or a disk is refused."""
    if not stat.S_ISREG(source.stat().st_mode):
        raise ImageError("it is not a file")
    with source.open("rb") as file:
        packed = file.read(len(XZ)) == XZ
    return lzma.open(source, "rb") if packed else source.open("rb")


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """Copy an image, unpacked; blocks of zeros take no space."""
    with _open(source) as file, target.open("xb") as copy:
        while block := file.read(BLOCK):
            if block.count(0) == len(block):
                copy.seek(len(block), os.SEEK_CUR)
            else:
                copy.write(block)
        copy.truncate(copy.tell())
