"""What the real tools of Debian 12 write is found on an image and left as it is. Nothing needs a device or root."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from ansible.module_utils.slurmstead.storage import content
from tests.disk_images import checksum
from tests.native.root import AS_ROOT, root

MIB = 2**20
SIZE = 1536 * MIB

PACKAGES = (
    *("bcache-tools", "btrfs-progs", "cryptsetup-bin", "dosfstools", "e2fsprogs", "exfatprogs", "f2fs-tools", "fdisk"),
    *("gdisk", "jfsutils", "nilfs-tools", "ntfs-3g", "ocfs2-tools", "reiserfsprogs", "squashfs-tools", "udftools"),
    *("xfsprogs", "xorriso"),
)

ENTER = """
mount --rbind /dev "$0/dev"
mount --rbind /proc "$0/proc"
mount --bind "$1" "$0/mnt"
ln -sf /proc/mounts "$0/etc/mtab"
exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C sh -euc "$2"
"""
"""Runs commands in the root $0; the directory $1 is /mnt there."""

FORMAT = "echo secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000"


def zero(count: int, seek: int = 0) -> str:
    """Return the command that overwrites `count` MiB of the disk with zeros, from `seek` MiB on."""
    return f"dd if=/dev/zero of=disk bs=1M count={count} seek={seek} conv=notrunc status=none"


RANDOM = "dd if=/dev/urandom of=disk bs=1M count=32 seek=700 conv=notrunc status=none"

LUKS = f"{FORMAT} --type luks2 --luks2-metadata-size 4m --luks2-keyslots-size 8m disk"

KINDS = {
    "gpt": ("sgdisk --new=1:0:0 disk", "partition table gpt"),
    "gpt-backup-only": (f"sgdisk --new=1:0:0 disk; {zero(8)}", "gpt at byte 1610612224"),
    "gpt-without-backup": (f"sgdisk --new=1:0:0 disk; {zero(8, 1528)}", "partition table gpt"),
    "dos": ("echo , | sfdisk --label dos disk", "partition table dos"),
    "dos-without-partitions": ("echo label: dos | sfdisk disk", "partition table dos"),
    "sun": ("echo , | sfdisk --label sun disk", "partition table sun"),
    "ext2": ("mkfs.ext2 -q disk", "signature ext2"),
    "ext4": ("mkfs.ext4 -q disk", "signature ext4"),
    "xfs": ("mkfs.xfs -q disk", "signature xfs"),
    "btrfs": ("mkfs.btrfs -q disk", "signature btrfs"),
    "swap": ("mkswap -q disk", "signature swap"),
    "vfat": ("mkfs.vfat disk", "signature vfat"),
    "exfat": ("mkfs.exfat disk", "signature exfat"),
    "ntfs": ("mkfs.ntfs -q -F -Q disk", "signature ntfs"),
    "f2fs": ("mkfs.f2fs -q disk", "signature f2fs"),
    "jfs": ("mkfs.jfs -q disk", "signature jfs"),
    "nilfs2": ("mkfs.nilfs2 -q disk", "signature nilfs2"),
    "ocfs2": ("yes | mkfs.ocfs2 -q -M local disk", "signature ocfs2"),
    "reiserfs": ("mkfs.reiserfs -q -ff disk", "signature reiserfs"),
    "udf": ("mkudffs disk", "signature udf"),
    "iso9660": ("xorriso -as mkisofs -quiet -o iso /etc; dd if=iso of=disk conv=notrunc status=none", "iso9660"),
    "squashfs": ("mksquashfs /etc image -quiet; dd if=image of=disk conv=notrunc status=none", "signature squashfs"),
    "bcache": ("make-bcache -B disk", "signature bcache"),
    "bcache-cache": ("make-bcache -C disk", "signature bcache"),
    "luks-1": (f"{FORMAT} --type luks1 disk", "signature crypto_LUKS"),
    "luks-2": (f"{FORMAT} --type luks2 disk", "signature crypto_LUKS"),
    # The same disks after an attempt to erase them.
    "luks-2-second-header": (f"{LUKS}; {zero(4)}", "at byte 4194304"),
    "luks-2-wiped": (f"{FORMAT} --type luks2 disk; wipefs -qa disk", "data in the first 4.0 MiB"),
    "luks-2-data": (f"{FORMAT} --type luks2 disk; {zero(32)}; {RANDOM}", "data in its middle, at byte"),
    "ext4-in-a-partition-without-a-table": (
        "mkfs.ext4 -q -E offset=1048576 disk 1500M; sgdisk --zap-all disk",
        "data in the first 4.0 MiB",
    ),
    "ext4-in-the-second-partition-without-a-table": (
        "mkfs.ext4 -q -E offset=537919488 disk 512M; sgdisk --zap-all disk",
        "data in its middle, at byte 537920",
    ),
    "ext4-without-its-beginning": (f"mkfs.ext4 -q disk; {zero(100)}", "data in its middle, at byte"),
    "xfs-without-its-beginning": (f"mkfs.xfs -q disk; {zero(100)}", "data in its middle, at byte"),
    "btrfs-without-its-beginning": (f"mkfs.btrfs -q disk; {zero(60)}", "data in its middle, at byte"),
    "ocfs2-without-its-beginning": (f"yes | mkfs.ocfs2 -q -M local disk; {zero(100)}", "data in its middle, at byte"),
}
"""Commands that write to the image `disk`, and what a refusal says about it."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_real_tool_writes_is_found_and_left_as_it_is(tmp_path: pathlib.Path, kind: str) -> None:
    command, expected = KINDS[kind]
    image = tmp_path / "disk"
    image.touch()
    os.truncate(image, SIZE)
    enter = [*AS_ROOT, "unshare", "--mount", "sh", "-euc", ENTER]
    inside = f"cd /mnt; exec > log 2>&1; {command}"
    done = subprocess.run([*enter, str(root("bookworm", PACKAGES)), str(tmp_path), inside], check=False)
    assert done.returncode == 0, (tmp_path / "log").read_text()
    assert image.stat().st_size == SIZE
    before = checksum(image)

    found = content.content(str(image), SIZE)

    assert expected in " | ".join(found)
    assert checksum(image) == before
