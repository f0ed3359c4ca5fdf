"""What stands on disks that are not blank, as bytes: the layout of each kind is what libblkid and the kernel look for.

The tests write these into image files, and into disks of the lab, so that no tool of the file systems is needed.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import random
import struct
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence

Pieces = dict[int, bytes]
"""Bytes by their offset in a disk."""

SECTOR = 512
MIB = 2**20
ID = uuid.UUID("6d1b0c6c-6f5c-4d3a-9f5e-1f2d3c4b5a69").bytes


def crc32c(data: bytes) -> int:
    """Return the Castagnoli checksum, which btrfs uses."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def lvm_crc(data: bytes) -> int:
    """Return LVM's checksum (LVM2 lib/misc/crc.c): CRC-32 with another start and no final inversion."""
    return zlib.crc32(data, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


def shares(size: int, count: int) -> tuple[list[int], int]:
    """Return where partitions of one size begin on a disk, the last one for what is left, and that size, in bytes."""
    share = (size - 2 * MIB) // (count + 1) // MIB * MIB
    return [MIB + number * share for number in range(count + 1)], share


def gpt(size: int, starts: Sequence[int] = (MIB,)) -> Pieces:
    """A GUID partition table and its backup at the end; a partition reaches to the next, the last to the end."""
    last = size // SECTOR - 1
    linux = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4").bytes_le
    firsts = [start // SECTOR for start in starts]
    entries = b"".join(
        (linux + ID[:-1] + bytes([number]) + struct.pack("<QQQ", first, after - 1, 0)).ljust(128, b"\0")
        for number, (first, after) in enumerate(zip(firsts, [*firsts[1:], last - 33], strict=True))
    ).ljust(128 * 128, b"\0")

    def header(at: int, other: int, table: int) -> bytes:
        def fields(crc: int) -> bytes:
            return struct.pack(
                "<8sIIIIQQQQ16sQIII",
                *(b"EFI PART", 0x10000, 92, crc, 0, at, other, 34, last - 34),
                *(ID, table, 128, 128, zlib.crc32(entries)),
            )

        return fields(zlib.crc32(fields(0))).ljust(SECTOR, b"\0")

    return {
        **protective_mbr(size),
        SECTOR: header(1, last, 2) + entries,
        (last - 32) * SECTOR: entries + header(last, 1, last - 32),
    }


def gpt_backup(size: int) -> Pieces:
    """What is left of a GUID partition table when its beginning was overwritten with zeros."""
    return {offset: data for offset, data in gpt(size).items() if offset > size // 2}


def protective_mbr(size: int) -> Pieces:
    """The DOS partition table in front of a GUID partition table."""
    return {446: struct.pack("<B3sB3sII", 0, b"", 0xEE, b"", 1, size // SECTOR - 1), 510: b"\x55\xaa"}


def dos(size: int) -> Pieces:
    """A DOS partition table with one Linux partition."""
    return {446: struct.pack("<B3sB3sII", 0, b"", 0x83, b"", 2048, size // SECTOR - 2048), 510: b"\x55\xaa"}


def ext4(size: int) -> Pieces:
    """The superblock of ext4."""
    block = bytearray(1024)
    struct.pack_into("<IIIIIIIII", block, 0, 64, size // 4096, 0, 0, 0, 0, 2, 2, 32768)
    struct.pack_into("<H", block, 0x38, 0xEF53)
    struct.pack_into("<IIII", block, 0x4C, 1, 0, 11, 256)
    struct.pack_into("<III", block, 0x5C, 0x4, 0x40, 0x1)  # has_journal; extents; sparse_super
    block[0x68:0x78] = ID
    return {1024: bytes(block)}


def xfs(size: int) -> Pieces:
    """The superblock of XFS, version 4."""
    block = bytearray(512)
    blocks = max(size // 4096, 4096)
    struct.pack_into(">4sIQQQ16s", block, 0, b"XFSB", 4096, blocks, 0, 0, ID)
    struct.pack_into(">IIIIIHHHH", block, 80, 1, blocks, 1, 0, 1024, 0xB4A4, 512, 256, 16)
    struct.pack_into(">BBBBBBBB", block, 120, 12, 9, 8, 4, 12, 0, 0, 25)
    return {0: bytes(block)}


def btrfs(size: int) -> Pieces:
    """The first superblock of btrfs."""
    block = bytearray(4096)
    struct.pack_into(
        "<16sQQ8sQQQQQQQQQIIIII", block, 0x20, ID, 0x10000, 1, b"_BHRfS_M", 1, 0, 0, 0, 0, size, 0, 6, 1, *([4096] * 5)
    )
    block[0:4] = struct.pack("<I", crc32c(bytes(block[0x20:])))
    return {0x10000: bytes(block)}


def swap(size: int) -> Pieces:
    """The header of swap space."""
    return {1024: struct.pack("<III", 1, size // 4096 - 1, 0) + ID, 4096 - 10: b"SWAPSPACE2"}


def lvm_label(member: str, flags: int = 0) -> bytes:
    """The label of an LVM physical volume; `member` is its UUID without hyphens, `flags` 1 if a volume group has it."""
    body = struct.pack("<I8s32sQ", 32, b"LVM2 001", member.encode(), 2**30)
    body += struct.pack("<QQQQQQQQ", 2**20, 0, 0, 0, 4096, 2**20 - 4096, 0, 0) + struct.pack("<II", 2, flags)
    body = body.ljust(SECTOR - 20, b"\0")
    return b"LABELONE" + struct.pack("<QI", 1, lvm_crc(body)) + body


def lvm_header(text_offset: int = 0, text_size: int = 0) -> bytes:
    """The header of the metadata of an LVM physical volume; it points to nothing unless told."""
    body = (
        b" LVM2 x[5A%r0N*>"
        + struct.pack("<IQQ", 1, 4096, 2**20 - 4096)
        + struct.pack("<QQII", text_offset, text_size, 0, 0)
    )
    body = body.ljust(SECTOR - 4, b"\0")
    return struct.pack("<I", lvm_crc(body)) + body


def lvm(size: int) -> Pieces:
    """An LVM physical volume that is not in a volume group yet."""
    return {SECTOR: lvm_label("0123456789abcdefghijklmnopqrstuv"), 4096: lvm_header()}


def md_1_2(size: int) -> Pieces:
    """A member of a Linux software RAID, metadata version 1.2, near the beginning."""
    return {4096: md_1(8)}


def md_1_0(size: int) -> Pieces:
    """A member of a Linux software RAID, metadata version 1.0, at the end only."""
    sector = (size // SECTOR - 16) & ~7
    return {sector * SECTOR: md_1(sector)}


def md_1(sector: int) -> bytes:
    """The superblock of a Linux software RAID that stands at a sector (include/uapi/linux/raid/md_p.h)."""
    block = bytearray(1024)
    struct.pack_into("<IIII16s32sQIIQIIII", block, 0, 0xA92B4EFC, 1, 0, 0, ID, b"node:0", 0, 1, 0, 0, 0, 2, 0, 0)
    struct.pack_into("<QQQQ", block, 128, 2048, 2048, sector, 0)
    struct.pack_into("<I", block, 220, 256)
    words = struct.unpack("<192I", bytes(block[:768]))
    total = sum(words)
    struct.pack_into("<I", block, 216, ((total & 0xFFFFFFFF) + (total >> 32)) & 0xFFFFFFFF)
    return bytes(block)


def md_0_90(size: int) -> Pieces:
    """A member of a Linux software RAID, metadata version 0.90, in the last whole 64 KiB but one."""
    return {size // 65536 * 65536 - 65536: struct.pack("<IIII", 0xA92B4EFC, 0, 90, 0).ljust(4096, b"\0")}


def luks(size: int) -> Pieces:
    """The header of an encrypted disk, LUKS 1."""
    header = b"LUKS\xba\xbe" + struct.pack(">H32s32s32sII", 1, b"aes", b"xts-plain64", b"sha256", 4096, 64)
    return {0: header.ljust(168, b"\0") + b"6d1b0c6c-6f5c-4d3a-9f5e-1f2d3c4b5a69"}


def luks_2_second_header(size: int) -> Pieces:
    """What is left of LUKS 2 with large headers when the first 4 MiB were overwritten with zeros."""
    header = b"SKUL\xba\xbe" + struct.pack(">HQQ48s32s64s40s48sQ", 2, 4 * MIB, 1, *(b"",) * 5, 4 * MIB)
    return {4 * MIB: header.ljust(4096, b"\0") + b'{"keyslots":{}}'}


def zfs(size: int) -> Pieces:
    """The four labels of a member of a ZFS pool, with their uberblocks."""
    uberblocks = b"".join(struct.pack("<QQQQQ", 0x00BAB10C, 5000, 4, 1, 0).ljust(1024, b"\0") for _ in range(128))
    end = size // 2**18 * 2**18
    return {start + 2**17: uberblocks for start in (0, 2**18, end - 2**19, end - 2**18)}


def zfs_second_label(size: int) -> Pieces:
    """Only the second of ZFS's labels."""
    return dict([sorted(zfs(size).items())[1]])


def zfs_last_label(size: int) -> Pieces:
    """Only the last of ZFS's labels."""
    return dict([sorted(zfs(size).items())[3]])


def bcache(size: int) -> Pieces:
    """The backing device of a bcache (include/uapi/linux/bcache.h)."""
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    return {4096: struct.pack("<QQQ", 0, 8, 1) + magic + ID}


def vmfs(size: int) -> Pieces:
    """A disk of VMware ESX: the header of its volume manager, 1 MiB from the beginning."""
    return {MIB: b"\x0d\xd0\x01\xc0" + struct.pack("<I", 3), 2 * MIB: b"\x5e\xf1\xab\x2f" + struct.pack("<I", 5)}


def vfat(size: int) -> Pieces:
    """The boot sector of FAT32."""
    sector = bytearray(512)
    struct.pack_into(
        "<3s8sHBHBHHBHHHII",
        sector,
        0,
        b"\xeb\x58\x90",
        b"mkfs.fat",
        512,
        1,
        32,
        2,
        0,
        0,
        0xF8,
        0,
        63,
        255,
        0,
        size // 512,
    )
    struct.pack_into("<IHHIHH", sector, 36, 1024, 0, 0, 2, 1, 6)
    struct.pack_into("<BBBI11s8s", sector, 64, 0x80, 0, 0x29, 0x12345678, b"NO NAME    ", b"FAT32   ")
    sector[510:512] = b"\x55\xaa"
    return {0: bytes(sector), 512: b"RRaA", 1024 - 28: b"rrAa"}


def ntfs(size: int) -> Pieces:
    """The boot sector of NTFS and the first record of its table of files."""
    sector = bytearray(512)
    struct.pack_into("<3s8sHBHBHHB", sector, 0, b"\xeb\x52\x90", b"NTFS    ", 512, 8, 0, 0, 0, 0, 0xF8)
    struct.pack_into("<QQQbxxxbxxxQ", sector, 40, size // 512 - 1, 4, 2, -10, 1, 0x1234567890)
    sector[510:512] = b"\x55\xaa"
    return {0: bytes(sector), 4 * 4096: b"FILE", 4 * 4096 + 3 * 1024: b"FILE"}


def iso9660(size: int) -> Pieces:
    """The volume descriptor of a CD or of an installer's image."""
    return {32768: b"\x01CD001\x01".ljust(40, b"\0") + b"INSTALLER".ljust(32)}


def bluestore(size: int) -> Pieces:
    """A disk of Ceph."""
    return {0: b"bluestore block device\n6d1b0c6c-6f5c-4d3a-9f5e-1f2d3c4b5a69\n"}


def two_at_once(size: int) -> Pieces:
    """XFS over ext4: signatures that contradict each other."""
    return {**ext4(size), **xfs(size)}


def noise(size: int) -> Pieces:
    """Data of which nobody knows the kind, at the beginning."""
    return {0: bytes((index * 7919 >> 3) % 255 + 1 for index in range(65536))}


def without_table(size: int) -> Pieces:
    """A file system in the place of the first partition, whose table was wiped."""
    return {MIB + offset: data for offset, data in ext4(size).items()}


def xfs_copies(size: int) -> Pieces:
    """The heads of the second to fourth allocation group of XFS; the first one was overwritten with zeros."""
    (superblock,) = xfs(size).values()
    return {size * part // 4 // 4096 * 4096: superblock for part in (1, 2, 3)}


def middle(size: int) -> Pieces:
    """Random sectors, as of an encrypted disk without a header, in one fiftieth of the disk, far from both ends."""
    start, numbers = size * 3 // 8 // SECTOR * SECTOR, random.Random(1)
    return {offset: numbers.randbytes(SECTOR) for offset in range(start, start + size // 50, 96 * 1024)}


def partly_erased(size: int) -> Pieces:
    """0xFF in the first 5 MiB, as of a flash of which only that part was erased."""
    return {0: b"\xff" * (5 * MIB)}


def last_byte_of_first_part(size: int) -> Pieces:
    """One byte, the last that is looked at from the beginning."""
    return {4 * 2**20 - 1: b"\x01"}


def last_byte(size: int) -> Pieces:
    """One byte, the last of the disk."""
    return {size - 1: b"\x01"}


KINDS: Mapping[str, tuple[Callable[[int], Pieces], str]] = {
    "gpt": (gpt, "partition table gpt"),
    "gpt-backup": (gpt_backup, "gpt at byte"),
    "dos": (dos, "partition table dos"),
    "ext4": (ext4, "signature ext4"),
    "xfs": (xfs, "signature xfs"),
    "btrfs": (btrfs, "signature btrfs"),
    "swap": (swap, "signature swap"),
    "lvm": (lvm, "signature LVM2_member"),
    "md-1.2": (md_1_2, "signature linux_raid_member"),
    "md-1.0": (md_1_0, "signature linux_raid_member"),
    "md-0.90": (md_0_90, "signature linux_raid_member"),
    "luks": (luks, "signature crypto_LUKS"),
    "zfs": (zfs, "signature zfs_member"),
    "luks-2-second-header": (luks_2_second_header, "at byte 4194304"),
    "zfs-second-label": (zfs_second_label, "signature zfs_member"),
    "zfs-last-label": (zfs_last_label, "signature zfs_member"),
    "bcache": (bcache, "signature bcache"),
    "vmfs": (vmfs, "VMFS"),
    "vfat": (vfat, "signature vfat"),
    "ntfs": (ntfs, "signature ntfs"),
    "iso9660": (iso9660, "signature iso9660"),
    "bluestore": (bluestore, "signature ceph_bluestore"),
    "two-at-once": (two_at_once, "signature ambivalent"),
    "noise": (noise, "data in the first 4.0 MiB"),
    "without-table": (without_table, "data in the first 4.0 MiB, at byte 1049"),
    "xfs-copies": (xfs_copies, "data in its middle, at byte"),
    "middle": (middle, "data in its middle, at byte"),
    "partly-erased": (partly_erased, "data in the last 4.0 MiB, at byte"),
    "last-byte-of-first-part": (last_byte_of_first_part, "data in the first 4.0 MiB"),
    "last-byte": (last_byte, "data in the last 4.0 MiB"),
}
"""How to make each kind on a disk of a size in bytes, and what a refusal says about it."""


def write(path: pathlib.Path, size: int, pieces: Mapping[int, bytes]) -> None:
    """Write some bytes into an image of a size; what else it has stays, and a new one is zeros."""
    path.touch()
    with path.open("r+b") as image:
        image.truncate(size)
        for offset, data in pieces.items():
            image.seek(offset)
            image.write(data)


def checksum(path: pathlib.Path) -> str:
    """Return a checksum of an image; holes count as the zeros that they are, and are not read."""
    digest = hashlib.sha256()
    with path.open("rb") as image:
        digest.update(str(os.fstat(image.fileno()).st_size).encode())
        offset = 0
        while True:
            try:
                offset = os.lseek(image.fileno(), offset, os.SEEK_DATA) // MIB * MIB
            except OSError:  # ENXIO: no data beyond
                return digest.hexdigest()
            block = os.pread(image.fileno(), MIB, offset)
            if block.count(0) != len(block):
                digest.update(f"{offset} ".encode() + block)
            offset += MIB
