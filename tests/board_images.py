"""Images of disks with a system on ext4, as a board's maker offers them."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Sequence

from ansible.module_utils.slurmstead.board.ext4 import PATH
from tests import disk_images

START = 16 * disk_images.MIB
"""First byte of the partition; boot loaders of Rockchip's boards are in front of it."""


def image(
    path: pathlib.Path, tree: pathlib.Path, size: int, table: str = "gpt", as_root: Sequence[str] = ()
) -> pathlib.Path:
    """Make an image of `size` bytes whose one partition has the files of a directory.

    :param as_root: begins a command that may read them
    """
    pieces = disk_images.gpt(size, [START]) if table == "gpt" else disk_images.dos(size)
    start = START if table == "gpt" else 2048 * disk_images.SECTOR
    disk_images.write(path, size, pieces)
    blocks = (size - start - disk_images.MIB) // 4096
    made = ("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-d", str(tree), "-E", f"offset={start}", str(path))
    subprocess.run([*as_root, *made, str(blocks)], env={**os.environ, "PATH": PATH}, check=True, capture_output=True)
    return path


def shown(path: pathlib.Path, request: str, start: int = START) -> str:
    """Return what debugfs prints of a file system."""
    words = ["debugfs", "-R", request, f"{path}?offset={start}"]
    done = subprocess.run(words, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=True)
    return done.stdout
