# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The partitions of a disk image, from its first megabyte (UEFI 2.10, chapter 5; sectors of 512 bytes)."""

from __future__ import annotations

import struct
from typing import NamedTuple

SECTOR = 512
HEAD = 2**20
"""Bytes of an image that have its partition table."""

EXTENDED = (0x05, 0x0F, 0x85)
PROTECTIVE = 0xEE


class ImageError(Exception):
    """A file is not an image that can be used; the message says why."""


class Partition(NamedTuple):
    """A partition: its number, first byte, and size in bytes."""

    number: int
    start: int
    size: int


def partitions(head: bytes) -> list[Partition]:
    """Return the partitions of an image that begins with these bytes; logical partitions of an MBR are left out.

    :raises ImageError: it has no partition table
    """
    if len(head) < 2 * SECTOR or head[510:512] != b"\x55\xaa":
        raise ImageError("it has no partition table, so it is not the image of a disk")
    old = [struct.unpack_from("<4xB3xII", head, 446 + 16 * index) for index in range(4)]
    if any(kind == PROTECTIVE for kind, _, _ in old):
        return _gpt(head)
    found = [
        Partition(number, start * SECTOR, count * SECTOR)
        for number, (kind, start, count) in enumerate(old, 1)
        if kind and count and kind not in EXTENDED
    ]
    if not found:
        raise ImageError("its partition table is empty")
    return found


def _gpt(head: bytes) -> list[Partition]:
    if head[SECTOR : SECTOR + 8] != b"EFI PART":
        raise ImageError("its GPT is damaged; download it again")
    table, count, size = struct.unpack_from("<QII", head, SECTOR + 72)
    found = []
    for number in range(1, count + 1):
        offset = table * SECTOR + (number - 1) * size
        if size < 128 or offset + size > len(head):
            break
        kind, first, last = struct.unpack_from("<16s16xQQ", head, offset)
        if any(kind):
            found.append(Partition(number, first * SECTOR, (last + 1 - first) * SECTOR))
    if not found:
        raise ImageError("its partition table is empty")
    return found


def end(found: list[Partition]) -> int:
    """Return the bytes that an image with these partitions has at least."""
    return max(one.start + one.size for one in found)
