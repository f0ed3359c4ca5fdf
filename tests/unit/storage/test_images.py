"""How large a file with a file system becomes."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.storage import images
from ansible.module_utils.slurmstead.storage.disks import DiskError

GIB = 2**30


def test_auto_is_half_of_the_free_space_in_whole_mebibytes() -> None:
    assert images.wanted_bytes("auto", None, 100 * GIB + 12345, "ext4") == 50 * GIB


def test_auto_keeps_the_size_of_what_exists() -> None:
    assert images.wanted_bytes("auto", 7 * GIB, 1000 * GIB, "ext4") == 7 * GIB
    assert images.wanted_bytes("auto", 7 * GIB, 0, "ext4") == 7 * GIB


@pytest.mark.parametrize(("present", "free"), [(None, 21 * GIB), (20 * GIB, 0), (15 * GIB, 6 * GIB)])
def test_a_declared_size_is_used_if_it_fits(present: int | None, free: int) -> None:
    assert images.wanted_bytes("20G", present, free, "ext4") == 20 * GIB


@pytest.mark.parametrize(
    ("size", "present", "free", "said"),
    [
        ("20G", None, 20 * GIB, "expected 21.0 GiB of free space for the size 20G, found 20.0 GiB"),
        ("20G", 10 * GIB, 10 * GIB, "expected 11.0 GiB of free space"),
        ("5G", 10 * GIB, 99 * GIB, "at least 10240M, which the file system has, found 5G"),
        ("auto", None, 100 * 2**20, "expected at least 64.0 MiB for ext4, found auto (50.0 MiB), because 100.0 MiB"),
        ("10M", None, GIB, "expected at least 64.0 MiB for ext4, found 10M"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(size: str, present: int | None, free: int, said: str) -> None:
    with pytest.raises(DiskError) as refused:
        images.wanted_bytes(size, present, free, "ext4")
    assert said in str(refused.value)


def test_two_directories_never_have_the_same_image() -> None:
    assert images.path("/srv/a-b") != images.path("/srv/a/b")


def test_space_is_counted_where_the_file_will_be(tmp_path: pathlib.Path) -> None:
    assert images.free_bytes(tmp_path / "a" / "b") > 0


@pytest.mark.parametrize(
    ("text", "found"),
    [("UUID=1 /srv/share ext4", True), ("# UUID=1 /srv/share ext4", False), ("UUID=1 /srv/share2 ext4", False)],
)
def test_a_mount_of_the_administrator_is_found(text: str, found: bool) -> None:
    assert images.is_in_fstab("/srv/share", f"{text} defaults 0 2\n") is found
