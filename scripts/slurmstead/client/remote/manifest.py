"""The manifest of a task: its files with sizes and checksums, so that a copy can be verified."""

import collections
import contextlib
import hashlib
import os
import pathlib
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

KEPT = ("stdout", "stderr", "result.json", "environment.log")
"""Files that belong to the results, in addition to those in work/."""

Summed = Callable[[str, os.stat_result], dict[str, Any]]


def checksum(path: pathlib.Path | str, block: int | None = None) -> str:
    """Return the SHA-256 of a file's content; with `block`, that of the digests of its blocks of so many bytes."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if block is None:
            return digest(file, sys.maxsize).hex()
        return hashlib.sha256(b"".join(digest(file, block) for _ in range(0, size, block))).hexdigest()


def digest(file: BinaryIO, size: int) -> bytes:
    """Return the SHA-256 of a file's next `size` bytes, or of those that are left."""
    found = hashlib.sha256()
    while part := file.read(min(size, 1 << 20)):
        found.update(part)
        size -= len(part)
    return found.digest()


def whole(path: str, _: os.stat_result) -> dict[str, Any]:
    """Return the checksum of a file for its entry."""
    return {"sha256": checksum(path)}


def walk(directory: str) -> Iterator[str]:
    """Yield the files and links below a directory by their paths relative to it; links are not followed."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        for entry in _entries(os.path.join(directory, below)):
            path = os.path.join(below, entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                yield path


def _entries(directory: str) -> "list[os.DirEntry[str]]":
    """Return the entries of a directory; none if it is gone, because background processes can still remove files."""
    with contextlib.suppress(FileNotFoundError):
        _allow(directory, os.lstat(directory).st_mode, stat.S_IRWXU)
        with os.scandir(directory) as entries:
            return list(entries)
    return []


def _allow(path: str, mode: int, wanted: int) -> None:
    """Add permissions to a program's file or directory, so that its owner can copy and remove it."""
    if mode & wanted != wanted:
        os.chmod(path, stat.S_IMODE(mode) | wanted)


def remove(directory: pathlib.Path) -> None:
    """Remove the working directory of a program."""
    # walk makes the entries removable, so it must reach all of them.
    collections.deque(walk(str(directory)), maxlen=0)
    shutil.rmtree(directory)


def entry(place: pathlib.Path, path: str, summed: Summed) -> dict[str, Any] | None:
    """Return a file's entry; None if it is gone, or is a socket, pipe or device."""
    full = os.path.join(place, path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        seen = os.lstat(full)
        if stat.S_ISLNK(seen.st_mode):
            return {"path": path, "link": os.readlink(full)}
        if stat.S_ISREG(seen.st_mode):
            _allow(full, seen.st_mode, stat.S_IRUSR)
            return {"path": path, "size": seen.st_size, **summed(full, seen)}
    return None


def make(place: pathlib.Path, given: pathlib.Path, summed: Summed = whole) -> list[dict[str, Any]]:
    """Return the entries of a task's output, and of each file in work/ that differs from `given`.

    A file is unchanged if size and mtime (in nanoseconds) are equal; a link, if its target is. A link to the path in
    `given` is unchanged too.

    :param summed: returns the checksum of a file
    """
    found = [name for name in KEPT if (place / name).is_file()]
    for path in sorted(walk(str(place / "work"))) if (place / "work").is_dir() else []:
        if not _same(os.path.join(place, "work", path), os.path.join(given, path)):
            found.append(os.path.join("work", path))
    return [made for path in found if (made := entry(place, path, summed))]


def _same(one: str, other: str) -> bool:
    try:
        left, right = os.lstat(one), os.lstat(other)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if stat.S_ISLNK(left.st_mode) and os.readlink(one) == other:
        # A path of `data`.
        return True
    if stat.S_ISLNK(left.st_mode) and stat.S_ISLNK(right.st_mode):
        return os.readlink(one) == os.readlink(other)
    return stat.S_IFMT(left.st_mode) == stat.S_IFMT(right.st_mode) and (left.st_size, left.st_mtime_ns) == (
        right.st_size,
        right.st_mtime_ns,
    )
