"""The middle of a disk is read in many places, in bounded time; sparse files are the disks."""

from __future__ import annotations

import errno
import itertools
import os
import pathlib
import random
import time
from collections.abc import Callable

import pytest

from ansible.module_utils.slurmstead.storage import content, sampling
from ansible.module_utils.slurmstead.storage.sampling import CHUNK, EDGE, GIB, MIB, ROUNDS, STRATA, Reader

LARGE = 4 * 10**12 // 4096 * 4096

Image = Callable[..., str]


@pytest.fixture
def image(tmp_path: pathlib.Path) -> Image:
    """Return a function that makes a sparse image of a size, with one byte at each of some offsets."""

    def make(size: int, *offsets: int) -> str:
        with (tmp_path / "disk").open("wb") as file:
            file.truncate(size)
            for offset in offsets:
                file.seek(offset)
                file.write(b"\x01")
        return str(tmp_path / "disk")

    return make


def test_a_blank_disk_of_4_tb_is_judged_in_bounded_time(image: Image) -> None:
    began = time.monotonic()
    assert content.content(image(LARGE), LARGE) == []
    assert time.monotonic() - began < sampling.BOUND


@pytest.mark.parametrize("size", [137 * MIB, 2 * GIB, LARGE, 100 * 10**12])
def test_each_part_of_the_middle_is_read_and_the_number_of_places_is_bounded(size: int) -> None:
    needed, further = sampling.places(size, random.Random(1))
    part = (size - 2 * EDGE) / STRATA
    assert {int((place + 4096 - EDGE) / part) for place in needed} >= set(range(STRATA))
    assert STRATA <= len(needed) < 2 * STRATA
    assert len(further) == (ROUNDS - 1) * STRATA
    for place in needed + further:
        assert EDGE <= place <= size - EDGE - CHUNK
        assert place % 4096 == 0


@pytest.mark.parametrize("size", [8 * MIB, 8 * MIB + 512, 9 * MIB, 64 * MIB + 7 * 512, 136 * MIB])
def test_the_middle_of_a_small_disk_is_read_completely(image: Image, size: int) -> None:
    needed, further = sampling.places(size, random.Random(1))
    assert further == []
    assert all(b - a == CHUNK for a, b in itertools.pairwise(needed))
    for byte in {EDGE, size // 2, size - EDGE - 1} if size > 2 * EDGE else ():
        assert content.content(image(size, byte), size) == [
            f"data in its middle, at byte {byte} ({content.human_size(byte)})"
        ]


@pytest.mark.parametrize(
    "byte",
    [
        *(EDGE, 64 * MIB + 64, 256 * GIB + 64),  # LUKS 2, btrfs
        *(128 * MIB * group + 56 for group in (1, 3, 5, 7, 9, 25, 27, 49, 19683)),  # ext4
        *(MIB + 128 * MIB * group + 56 for group in (1, 81, 125)),  # ext4 in the first partition
        *(GIB, 4 * GIB, 1024 * GIB, 10 * GIB, 1000 * GIB, GIB + MIB),  # OCFS2, BlueStore
        *(LARGE * part // 4 // 4096 * 4096 for part in (1, 2, 3)),  # XFS
        *(513 * MIB + 65536, 1025 * MIB + 1080),  # btrfs and ext4 in the second partition
    ],
)
def test_one_byte_where_a_format_keeps_a_copy_is_found_on_a_disk_of_4_tb(image: Image, byte: int) -> None:
    with Reader(image(LARGE, byte)) as reader:
        found = sampling.middle_finding(reader, LARGE, b"\0", time.monotonic() + 60)
    assert found == f"data in its middle, at byte {byte} ({content.human_size(byte)})"


@pytest.mark.parametrize("seed", range(8))
def test_one_hundredth_of_a_disk_in_one_piece_is_never_missed(seed: int) -> None:
    start = random.Random(seed).randrange(EDGE, LARGE - LARGE // 100 - EDGE)
    needed, _ = sampling.places(LARGE, random.Random(seed))
    assert any(start <= place < start + LARGE // 100 for place in needed)


def test_further_places_differ_from_call_to_call() -> None:
    first, second = (sampling.places(LARGE, random.Random()) for _ in range(2))
    assert first[0] == second[0]
    assert first[1] != second[1]


class SlowDisk:
    """A reader of zeros whose reads take a second each by a clock of its own; `data` is at one place."""

    def __init__(self, data: int = -1) -> None:
        self.now, self.data = 0.0, data

    def monotonic(self) -> float:
        """Return the time in seconds."""
        return self.now

    def read(self, offset: int, length: int) -> bytes:
        """Return zeros, or ones at `data`, a second later."""
        self.now += 1
        return (b"\1" if offset == self.data else b"\0") * length


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Callable[[SlowDisk, float], str | None]:
    """Return a function that judges the middle of a slow disk within some seconds."""

    def run(disk: SlowDisk, seconds: float) -> str | None:
        monkeypatch.setattr(sampling, "time", disk)
        return sampling.middle_finding(disk, LARGE, b"\0", seconds)  # type: ignore[arg-type]

    return run


Judge = Callable[[SlowDisk, float], str | None]


def test_a_disk_too_slow_for_the_places_that_must_be_read_is_not_blank(judge: Judge) -> None:
    needed, _ = sampling.places(LARGE, random.Random(1))
    found = judge(SlowDisk(), 99.5)
    assert found is not None
    assert f"too slow to be judged (only 100 of {len(needed)} places in its middle could be read within 30 s" in found
    assert judge(SlowDisk(), len(needed) - 1.5) is not None


def test_a_disk_too_slow_for_further_places_is_blank_and_reading_stops(judge: Judge) -> None:
    needed, further = sampling.places(LARGE, random.Random(1))
    disk = SlowDisk()
    assert judge(disk, len(needed) + 0.5) is None
    assert len(needed) < disk.now < len(needed) + 3 < len(needed + further)


def test_data_on_a_slow_disk_are_named_before_the_time_is_up(judge: Judge) -> None:
    needed, _ = sampling.places(LARGE, random.Random(1))
    assert judge(SlowDisk(needed[50]), 60) == (
        f"data in its middle, at byte {needed[50]} ({content.human_size(needed[50])})"
    )


def test_a_place_that_cannot_be_read_is_named(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.preadv

    def bad(file: int, buffers: list[memoryview], offset: int) -> int:
        if offset == EDGE:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(file, buffers, offset)

    monkeypatch.setattr(sampling.os, "preadv", bad)
    assert content.content(image(GIB), GIB) == [f"it cannot be read: Input/output error at byte {EDGE}"]


def test_a_disk_is_read_past_the_page_cache(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = os.open
    monkeypatch.setattr(sampling.os, "open", lambda path, flags: opened.append(flags) or real(path, flags))
    assert content.content(image(GIB), GIB) == []
    assert opened[0] & os.O_DIRECT
    assert opened[0] & os.O_ACCMODE == os.O_RDONLY


def test_an_image_on_a_file_system_without_direct_reads_is_read(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: str, flags: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real(path, flags)

    monkeypatch.setattr(sampling.os, "open", refuse)
    with Reader(image(GIB, 5 * MIB)) as reader:
        assert reader.read(5 * MIB - 1, 3) == b"\0\1\0"
