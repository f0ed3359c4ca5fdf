"""A file system is made only where none ever was; what its first bytes say is read."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.storage import filesystems
from ansible.module_utils.slurmstead.storage.disks import DiskError
from tests import disk_images

MIB = 2**20
UNFINISHED = "6d1b0c6c-6f5c-4d3a-9f5e-1f2d3c4b5a69"


@pytest.mark.parametrize(
    ("found", "unfinished", "step"),
    [
        ({"TYPE": "ext4", "UUID": "x"}, None, "keep"),
        ({"TYPE": "ext4", "UUID": "x"}, UNFINISHED, "keep"),
        ({"TYPE": "ext4", "UUID": UNFINISHED}, UNFINISHED, "inspect"),
        ({}, UNFINISHED, "make"),
    ],
    ids=["finished", "foreign", "ours-maybe-torn", "never-made"],
)
def test_a_file_system_is_made_only_where_none_ever_was(
    found: dict[str, str], unfinished: str | None, step: str
) -> None:
    assert filesystems.step("ext4", "/dev/scratch/scratch", found, unfinished) == step


@pytest.mark.parametrize(
    ("found", "unfinished"),
    [
        ({}, None),
        ({"TYPE": "xfs"}, None),
        ({"TYPE": "xfs"}, UNFINISHED),
        ({"TYPE": "ambivalent"}, UNFINISHED),
        ({"PTTYPE": "gpt"}, UNFINISHED),
        ({"UUID": "x"}, UNFINISHED),
    ],
    ids=["gone", "another", "another-unfinished", "ambivalent", "partition-table", "unknown"],
)
def test_anything_else_in_our_volume_is_refused(found: dict[str, str], unfinished: str | None) -> None:
    with pytest.raises(
        DiskError, match="/dev/scratch/scratch: expected the file system ext4, found .* Nothing was written"
    ):
        filesystems.step("ext4", "/dev/scratch/scratch", found, unfinished)


def head(kind: str, at: int = 0, value: int = 0) -> bytes:
    """The first 4096 bytes of a file system, with one byte changed."""
    pieces = {"ext4": disk_images.ext4, "xfs": disk_images.xfs}[kind](64 * MIB)
    data = bytearray(4096)
    for offset, piece in pieces.items():
        data[offset : offset + len(piece)] = piece
    if value:
        data[at] = value
    return bytes(data)


@pytest.mark.parametrize(("kind", "at"), [("ext4", 1024 + 0x2C), ("xfs", 247)])
def test_a_file_system_that_was_mounted_is_known(kind: str, at: int) -> None:
    assert not filesystems.was_mounted(kind, head(kind))
    assert filesystems.was_mounted(kind, head(kind, at, 1))


def test_an_xfs_in_progress_is_known() -> None:
    assert filesystems.is_in_progress("xfs", head("xfs", 126, 1))
    assert not filesystems.is_in_progress("xfs", head("xfs"))
    assert not filesystems.is_in_progress("ext4", head("ext4", 126, 1))


def test_the_size_of_an_ext4_is_read() -> None:
    assert filesystems.ext4_size(head("ext4")) == 64 * MIB
    assert filesystems.ext4_size(head("ext4", 1024 + 0x150, 1)) == 64 * MIB + 2**44
