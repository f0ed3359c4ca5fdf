"""Many files and large ones; both keep emulated machines busy for minutes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

LARGE = 2 * 2**30 + 5
"""Bytes; more than a signed number of 32 bits counts."""

MIB = os.urandom(4096) * 256
"""It is no hole in a file, and small on its way if ssh compresses."""

WRITE = f"""
with open("large", "wb") as file:
    for number in range({LARGE >> 20}):
        file.write(number.to_bytes(4, "big") + bytes(range(256)) * 4096)
    file.truncate({LARGE} - 5)
    file.seek(0, 2)
    file.write(b"tail\\n")
"""


def test_ten_thousand_small_files_are_submitted(cluster: Any) -> None:
    folder = cluster.project("many", {"main.py": "import os; print(len(os.listdir('data')))"})
    (folder / "data").mkdir()
    for number in range(10_000):
        Path(folder, "data", f"{number}.txt").write_text(str(number))
    run = cluster.run_of(cluster.stead("submit", folder, "--wait", seconds=1200))

    assert cluster.stead("logs", run) == "10000\n"


def test_ten_thousand_small_files_are_fetched(cluster: Any) -> None:
    write = "import pathlib\nfor number in range(10_000): pathlib.Path(str(number)).write_text(f'{number}\\n')\n"
    folder = cluster.project("many", {"main.py": write})
    run = cluster.run_of(cluster.stead("submit", folder, "--wait", seconds=1800))
    cluster.stead("fetch", run, seconds=1800)

    work = cluster.results(run) / "work"
    assert {path.name: path.read_text() for path in work.iterdir()} == {str(n): f"{n}\n" for n in range(10_000)}


@pytest.fixture
def compressed(cluster: Any) -> str:
    """A configuration of ssh with which two GiB do not take the time of two GiB; the share must have room for them."""
    free = int(cluster.user("df --output=avail -B1 ~ | tail -n1"))
    assert free > LARGE + 2**28, f"the share has room for {free} bytes of {LARGE}"
    config = cluster.directory / "compressed"
    config.write_text(f"Include {cluster.variables['STEAD_SSH_CONFIG']}\nHost *\n  Compression yes\n")
    return str(config)


def test_a_file_of_two_gib_is_submitted(cluster: Any, compressed: str) -> None:
    """It need not run: each task has its own copy, and the lab's disk has no room for two."""
    first = cluster.run_of(
        cluster.stead("submit", cluster.project("first", {"main.py": "import time; time.sleep(600)"}))
    )
    folder = cluster.project("large", {"main.py": ""})
    with open(folder / "large", "wb") as file:
        for number in range(LARGE >> 20):
            file.write(number.to_bytes(4, "big") + MIB[4:])
        file.write(b"tail\n")
    said = cluster.stead("submit", folder, "--after", first, "--ssh-config", compressed, seconds=1200)

    arrived = f"{cluster.variables['STEAD_DIRECTORY']}/runs/{cluster.run_of(said)}/input/large"
    assert cluster.user(f"stat --format=%s {arrived}; tail -c 5 {arrived}") == f"{LARGE}\ntail"


def test_a_file_of_two_gib_is_fetched(cluster: Any, compressed: str) -> None:
    folder = cluster.project("writes", {"main.py": WRITE})
    run = cluster.run_of(cluster.stead("submit", folder, "--mem", "200M", "--wait", seconds=1200))
    cluster.stead("fetch", run, "--ssh-config", compressed, seconds=1200)

    # It is compared with the checksum that the node took.
    fetched = cluster.results(run) / "work/large"
    assert fetched.stat().st_size == LARGE
    with open(fetched, "rb") as file:
        file.seek(LARGE - 5)
        assert file.read() == b"tail\n"
