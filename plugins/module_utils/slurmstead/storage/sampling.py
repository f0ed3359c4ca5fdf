# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Reads the middle of a disk in places: a whole disk takes hours to read, and its ends say nothing of its middle.

A place is CHUNK bytes. First come the places where formats keep copies of their metadata, then one in each of STRATA
equal parts of the middle; a disk is blank only if all of these were read. Until the time is up, further rounds read
each part at other offsets, which differ from call to call. A middle of up to 128 MiB is read completely.

What is left: data that fill 1 % of a disk, in one piece, lie in two or three parts and cannot be missed. If they are
scattered, all 1,024 places miss them in 3 of 100,000 disks; if they fill 0.1 %, in one of three.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import random
import time
from types import TracebackType

from ansible.module_utils.slurmstead.storage.disks import human_size

MIB = 2**20
GIB = 2**30

EDGE = 4 * MIB
"""Bytes read at either end of a disk: where partition tables, boot loaders and the metadata of all formats begin."""

CHUNK = 2**17
"""Bytes read at each place; a file system that begins there has its superblock in them (btrfs: 64 KiB + 4 KiB)."""

STRATA = 256
"""Equal parts of the middle; at least one place is read in each."""

ROUNDS = 4
"""Places in each part, if the disk is fast enough."""

BOUND = 30.0
"""Seconds for reading a disk."""

ERASED = (b"\0", b"\xff")
"""What erased media return."""

ALIGNED = 4096
"""The largest sector of disks, and so the unit of O_DIRECT."""

STARTS = (101, 129, 201, 257, 261, 301, 501, 513, 515, 551, 601, 1001, 1025, 1537, 2049)
"""MiB at which the second partition often begins, after one for EFI or /boot."""


class Reader:
    """A device or image that is open for reading. It bypasses the page cache where the file system of an image can.

    So it reads the medium, and does not evict other programs' pages. Usable as a context manager.
    """

    def __init__(self, path: str) -> None:
        """Open a path; raises OSError."""
        flags = os.O_RDONLY | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags | os.O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._file = os.open(path, flags)
        # O_DIRECT needs an aligned buffer; mmap's is a page.
        self._buffer = mmap.mmap(-1, EDGE)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._file)
        self._buffer.close()

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes (at most EDGE) at an offset; raises OSError if any of them cannot be read."""
        done = 0
        while done < length:
            with memoryview(self._buffer) as whole, whole[done:length] as free:
                count = self._fill(free, offset + done)
            if not count:
                raise OSError(errno.EIO, f"only {done} of {length} bytes at byte {offset} can be read")
            done += count
        return self._buffer[:length]

    def _fill(self, free: memoryview, offset: int) -> int:
        try:
            return os.preadv(self._file, [free], offset)
        except OSError as error:
            flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
            if error.errno != errno.EINVAL or not flags & os.O_DIRECT:
                raise OSError(error.errno, f"{error.strerror} at byte {offset}") from error
        # An image whose size is not a multiple of the sectors of the disk that it is on.
        fcntl.fcntl(self._file, fcntl.F_SETFL, flags & ~os.O_DIRECT)
        return self._fill(free, offset)


def first_data(data: bytes, erased: bytes) -> int | None:
    """Return the offset of the first byte that is not the erased one, or None.

    >>> first_data(bytes(3), bytes(1)), first_data(b"\\0\\0x", bytes(1))
    (None, 2)
    """
    if data.count(erased) == len(data):
        return None
    return len(data) - len(data.lstrip(erased))


def known_places(size: int) -> set[int]:
    """Return where formats keep copies of their metadata in the middle of a disk of a size in bytes.

    For a file system on the whole disk, and for one in a partition that begins at 1 MiB and of which only the beginning
    and the partition table were erased.
    """
    powers = {base**exponent for base in (3, 5, 7) for exponent in range(24)}
    copies = {128 * MIB * power for power in powers}  # ext4: sparse_super, groups of 128 MiB
    copies |= {64 * MIB, 256 * GIB}  # btrfs
    copies |= {4**exponent * GIB for exponent in range(6)}  # OCFS2
    copies |= {10**exponent * GIB for exponent in range(4)}  # Ceph BlueStore
    quarters = {size * part // 4 // ALIGNED * ALIGNED for part in (1, 2, 3)}  # XFS: four allocation groups
    return copies | {copy + MIB for copy in copies} | {start * MIB for start in STARTS} | quarters


def places(size: int, varied: random.Random) -> tuple[list[int], list[int]]:
    """Return the places of a disk of a size in bytes: those that must be read, and further ones, in order.

    Both are offsets in bytes, multiples of ALIGNED. Each round is ascending: a hard disk's heads move once across it.
    """
    middle = size - 2 * EDGE
    if middle <= STRATA * ROUNDS * CHUNK:
        return list(range(EDGE, size - EDGE, CHUNK)), []
    starts = [EDGE + middle * part // STRATA // ALIGNED * ALIGNED for part in range(STRATA)]
    room = (middle // STRATA - CHUNK) // ALIGNED
    rounds = [start + varied.randrange(room) * ALIGNED for _ in range(ROUNDS - 1) for start in starts]
    known = {place for place in known_places(size) if EDGE <= place <= size - EDGE - CHUNK}
    return sorted(known | set(starts)), rounds


def middle_finding(reader: Reader, size: int, erased: bytes, deadline: float) -> str | None:
    """Return why the middle of a disk is not blank, None if it is.

    `erased` is the byte of which its ends consist, `deadline` a reading of time.monotonic(). Raises OSError.
    """
    needed, further = places(size, random.Random())
    for count, place in enumerate(needed + further):
        if time.monotonic() > deadline:
            if count < len(needed):
                read = f"only {count} of {len(needed)} places in its middle could be read within {BOUND:.0f} s"
                return f"a disk too slow to be judged ({read}: use a faster one, or check its connection)"
            break
        at = first_data(reader.read(place, min(CHUNK, size - EDGE - place)), erased)
        if at is not None:
            return f"data in its middle, at byte {place + at} ({human_size(place + at)})"
    return None
