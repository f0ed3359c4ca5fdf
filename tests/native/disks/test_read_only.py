"""A file system that refuses changes after an error is called read-only, although the kernel says `rw`."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.doctor.facts import machine
from tests.unit.test_health_check import health


@pytest.fixture
def disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A mounted ext4."""
    assert os.geteuid() == 0, "Run this as root: nobody else may mount an ext4"
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(16 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", image, place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("options", ["remount,abort", "remount,ro"])
def test_a_disk_that_refuses_changes_is_read_only(disk: pathlib.Path, options: str) -> None:
    before = health.storage_cause("scratch", str(disk), True, 0), machine.paths([str(disk)])[str(disk)]["readonly"]
    subprocess.run(["mount", "-o", options, disk], check=True)

    assert before == ("", False)
    assert health.storage_cause("scratch", str(disk), True, 0) == f"scratch {disk} is read-only"
    assert machine.paths([str(disk)])[str(disk)]["readonly"]
