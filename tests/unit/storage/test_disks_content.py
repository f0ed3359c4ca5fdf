"""What is on a disk is found and named; image files stand for disks."""

from __future__ import annotations

import hashlib
import pathlib
import subprocess
from collections.abc import Callable, Mapping

import pytest

from ansible.module_utils.slurmstead.storage import content, disks
from tests import disk_images

MIB = 2**20
SIZE = 64 * MIB + 7 * 512


def write(path: pathlib.Path, size: int, pieces: Mapping[int, bytes]) -> str:
    """Make an image of a size with some bytes in it; return its path."""
    path.unlink(missing_ok=True)
    disk_images.write(path, size, pieces)
    assert path.stat().st_size == size
    return str(path)


@pytest.mark.parametrize("kind", disk_images.KINDS)
@pytest.mark.parametrize("size", [SIZE, 1024 * MIB])
def test_what_is_not_blank_is_found_and_named(tmp_path: pathlib.Path, kind: str, size: int) -> None:
    make, expected = disk_images.KINDS[kind]
    image = write(tmp_path / "disk", size, make(size))
    assert expected in " | ".join(content.content(image, size))


@pytest.mark.parametrize("kind", disk_images.KINDS)
def test_looking_changes_nothing(tmp_path: pathlib.Path, kind: str) -> None:
    image = write(tmp_path / "disk", 16 * MIB, disk_images.KINDS[kind][0](16 * MIB))
    before = hashlib.sha256(pathlib.Path(image).read_bytes()).hexdigest()
    content.content(image, 16 * MIB)
    assert hashlib.sha256(pathlib.Path(image).read_bytes()).hexdigest() == before


@pytest.mark.parametrize(
    "size", [512, 4096, MIB, 4 * MIB, 4 * MIB + 512, 8 * MIB - 512, 8 * MIB, SIZE, 5 * 2**30 + 512]
)
def test_a_blank_disk_of_any_size_is_blank(tmp_path: pathlib.Path, size: int) -> None:
    assert content.content(write(tmp_path / "disk", size, {}), size) == []


@pytest.mark.parametrize("size", [512, 4096, MIB, 4 * MIB, 4 * MIB + 512, 8 * MIB - 512, SIZE])
@pytest.mark.parametrize("end", ["first", "last"])
def test_one_byte_at_either_end_is_enough(tmp_path: pathlib.Path, size: int, end: str) -> None:
    image = write(tmp_path / "disk", size, {0 if end == "first" else size - 1: b"\x01"})
    assert content.content(image, size)


@pytest.fixture
def erased(tmp_path: pathlib.Path) -> Callable[[Mapping[int, bytes]], list[str]]:
    """Return a function that writes some bytes to a flash that returns 0xFF where it is erased, and judges it."""

    def judge(pieces: Mapping[int, bytes]) -> list[str]:
        image = write(tmp_path / "disk", SIZE, {0: b"\xff" * SIZE})
        disk_images.write(tmp_path / "disk", SIZE, pieces)
        return content.content(image, SIZE)

    return judge


Judge = Callable[[Mapping[int, bytes]], list[str]]


def test_erased_flash_that_returns_ones_is_blank(erased: Judge) -> None:
    assert erased({}) == []


@pytest.mark.parametrize(
    ("byte", "expected"),
    [
        (0, "data in the first 4.0 MiB"),
        (5, "data in the first 4.0 MiB, at byte 5"),
        (SIZE // 2, "data in its middle, at byte 33556224"),
        (SIZE - 1, "data in the last 4.0 MiB, at byte 67112447"),
    ],
)
def test_one_zero_on_erased_flash_is_data(erased: Judge, byte: int, expected: str) -> None:
    assert expected in " | ".join(erased({byte: b"\0"}))


def test_zeros_in_one_half_and_ones_in_the_other_are_data(erased: Judge) -> None:
    assert erased({0: bytes(SIZE // 2)}) == [f"data in the last 4.0 MiB, at byte {SIZE - 4 * MIB}"]
    assert erased({SIZE // 2: bytes(SIZE // 2)}) == [f"data in the last 4.0 MiB, at byte {SIZE - 4 * MIB}"]


def test_a_disk_whose_signatures_were_wiped_and_that_was_zeroed_is_blank(tmp_path: pathlib.Path) -> None:
    image = write(tmp_path / "disk", SIZE, {})
    subprocess.run(["/sbin/mkfs.ext4", "-q", image], check=True)
    subprocess.run(["/sbin/wipefs", "--quiet", "--all", image], check=True)
    subprocess.run(["/usr/bin/fallocate", "--punch-hole", f"--length={SIZE}", image], check=True)
    assert content.content(image, SIZE) == []


def test_a_real_file_system_is_found(tmp_path: pathlib.Path) -> None:
    image = write(tmp_path / "disk", 16 * MIB, {})
    subprocess.run(["/sbin/mkfs.ext4", "-q", image], check=True)
    assert "signature ext4" in content.content(image, 16 * MIB)


def test_remains_of_a_file_system_whose_signature_was_wiped_are_found(tmp_path: pathlib.Path) -> None:
    image = write(tmp_path / "disk", 16 * MIB, {})
    subprocess.run(["/sbin/mkfs.ext4", "-q", image], check=True)
    subprocess.run(["/sbin/wipefs", "--quiet", "--all", image], check=True)
    assert content.signatures(image) == []
    assert content.content(image, 16 * MIB) == ["data in the first 4.0 MiB, at byte 1025"]


def test_a_disk_that_ends_early_cannot_be_read(tmp_path: pathlib.Path) -> None:
    image = write(tmp_path / "disk", 16 * MIB, {})
    (finding,) = content.content(image, 32 * MIB)
    assert finding.startswith("it cannot be read")


def test_a_disk_that_is_gone_cannot_be_read(tmp_path: pathlib.Path) -> None:
    (finding,) = content.content(str(tmp_path / "gone"), 16 * MIB)
    assert finding == "it cannot be read: No such file or directory"


@pytest.mark.parametrize("tool", ["blkid", "wipefs"])
def test_a_tool_that_fails_means_not_blank(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    for name in ("blkid", "wipefs"):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\necho broken >&2\nexit {4 if name == tool else 0}\n")
        script.chmod(0o755)
    monkeypatch.setitem(disks.ENVIRONMENT, "PATH", str(tmp_path))
    with pytest.raises(disks.DiskError, match=f"expected {tool} to inspect it, but it failed .4.: broken"):
        content.content(write(tmp_path / "disk", 16 * MIB, {}), 16 * MIB)


def test_a_tool_that_hangs_ends_at_its_deadline() -> None:
    with pytest.raises(disks.DiskError, match="expected `sleep 60` to end within 0 s"):
        disks.run(["sleep", "60"], deadline=0.1)


def test_a_tool_that_is_missing_is_named() -> None:
    with pytest.raises(disks.DiskError, match="the tool no-such-tool"):
        disks.run(["no-such-tool"], deadline=1)


def test_a_tool_has_nobody_to_ask() -> None:
    assert disks.run(["cat"], deadline=5).stdout == ""


OURS = "slurmsteadABCDEFGHIJKLMNOPQRSTUV"
LABEL = {512: disk_images.lvm_label(OURS)}
HEADER = {4096: disk_images.lvm_header()}


@pytest.mark.parametrize(
    ("pieces", "begun"),
    [
        (HEADER, "header"),
        ({**LABEL, **HEADER}, "label"),
        ({512: disk_images.lvm_label(OURS, flags=1), **HEADER}, "used"),
        ({512: disk_images.lvm_label(OURS, flags=1), **HEADER, 4608: b"scratch {\nseqno = 1\n"}, "used"),
    ],
    ids=["before-the-label", "before-the-group", "marked-as-used", "before-the-group-is-committed"],
)
def test_what_an_interrupted_run_left_is_as_good_as_blank(
    tmp_path: pathlib.Path, pieces: Mapping[int, bytes], begun: str
) -> None:
    image = write(tmp_path / "disk", SIZE, pieces)
    assert content.unfinished_member(content.read_head(image, SIZE)) == begun
    assert content.content(image, SIZE) == []


WIPED = {0: bytes(2048), 4096: disk_images.lvm_header().ljust(4096, b"\0")}
"""What pvcreate writes besides its label, also on a disk of ones (seen with LVM 2.03.16)."""

TEXT = {4608: b"scratch {\nseqno = 1\n"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "begun"),
    [
        (WIPED, "header"),
        ({**WIPED, **LABEL}, "label"),
        ({**WIPED, 512: disk_images.lvm_label(OURS, flags=1)}, "used"),
        ({**WIPED, 512: disk_images.lvm_label(OURS, flags=1), **TEXT}, "used"),
        ({**WIPED, 512: b"\xff" * 512}, "header"),
    ],
    ids=["before-the-label", "before-the-group", "marked-as-used", "before-the-group-is-committed", "label-erased"],
)
def test_what_an_interrupted_run_left_on_erased_flash_is_as_good_as_blank(
    tmp_path: pathlib.Path, erased: Judge, pieces: Mapping[int, bytes], begun: str
) -> None:
    assert erased(pieces) == []
    assert content.unfinished_member(content.read_head(str(tmp_path / "disk"), SIZE)) == begun


@pytest.mark.slow
@pytest.mark.parametrize(
    "pieces",
    [
        {**WIPED, 512: disk_images.lvm_label("0123456789abcdefghijklmnopqrstuv")},
        {**WIPED, **LABEL, MIB: b"\0"},
        {**WIPED, **LABEL, SIZE // 2: b"\0"},
        {**WIPED, **LABEL, SIZE - 1: b"\0"},
        {**WIPED, **LABEL, 3000: b"\1"},
        {**WIPED, **TEXT},
    ],
    ids=["foreign", "data", "data-in-the-middle", "data-at-the-end", "between", "group-without-label"],
)
def test_any_other_physical_volume_on_erased_flash_is_not_blank(erased: Judge, pieces: Mapping[int, bytes]) -> None:
    assert erased(pieces)


@pytest.mark.parametrize(
    "pieces",
    [
        {512: disk_images.lvm_label("0123456789abcdefghijklmnopqrstuv"), **HEADER},
        {**LABEL, 4096: disk_images.lvm_header(4608, 1000), 4608: b"scratch {\nseqno = 1\n"},
        {**HEADER, 4608: b"scratch {\nseqno = 1\n"},
        {**LABEL, **HEADER, MIB: b"\x01"},
        {**LABEL, **HEADER, 0: b"\x01"},
        {**LABEL, **HEADER, 1024: b"\x01"},
        {**LABEL, **HEADER, SIZE - 1: b"\x01"},
        {**LABEL, **HEADER, SIZE // 2: b"\x01"},
        {**LABEL, **HEADER, **disk_images.swap(SIZE)},
        {**LABEL, **HEADER, **disk_images.md_1_0(SIZE)},
        LABEL,
    ],
    ids=[
        "foreign",
        "in-a-group",
        "group-without-label",
        "data",
        "boot-sector",
        "between",
        "data-at-the-end",
        "data-in-the-middle",
        "swap",
        "raid-at-the-end",
        "label-alone",
    ],
)
def test_any_other_physical_volume_is_not_blank(tmp_path: pathlib.Path, pieces: Mapping[int, bytes]) -> None:
    assert content.content(write(tmp_path / "disk", SIZE, pieces), SIZE)
