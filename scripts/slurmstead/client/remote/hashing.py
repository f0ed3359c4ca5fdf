"""Checksums of the files of a task that left no manifest: several requests compute them, and none takes long."""

import hashlib
import math
import os
import pathlib
import time
from typing import Any

from slurmstead.client.remote import manifest, store

FILE = "checksums.json"
"""In the directory of the task: size, modification time (ns) and the checksums of the first blocks of each file."""

BLOCK = 1 << 28
"""Bytes that are hashed at once. Python cannot save an unfinished SHA-256, so a longer file has one for each block."""


class Hasher:
    """Hashes the files of tasks for a limited time, and at least one block; the next one continues.

    `size` is the number of bytes of these files, `hashed` of those that are hashed.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # The time to list the files does not count: otherwise a task of many files would never be hashed.
        self._deadline: float | None = None
        self._known: dict[str, list[Any]] = {}
        self.size = 0
        self.hashed = 0
        self.complete = True

    def entries(self, place: pathlib.Path, given: pathlib.Path) -> list[dict[str, Any]]:
        """Return the entries of a task, as manifest.make does; wrong unless `complete` after all tasks."""
        self._known = store.read_json(place / FILE) or {}
        before = dict(self._known)
        size, hashed, complete = self.size, self.hashed, self.complete
        entries = manifest.make(place, given, self._sum)
        if self._known != before:
            try:
                store.write_json(place / FILE, self._known)
            except OSError:
                # The disk is full: the next request would have to begin again, so this one goes on to the end.
                self._deadline = math.inf
                self.size, self.hashed, self.complete = size, hashed, complete
                entries = manifest.make(place, given, self._sum)
        return entries

    def _sum(self, path: str, seen: os.stat_result) -> dict[str, Any]:
        """Return the checksum of a file, and the size of its blocks if it has several."""
        size, changed, known = self._known.get(path, (0, 0, []))
        blocks = list(known) if (size, changed) == (seen.st_size, seen.st_mtime_ns) else []
        wanted = -(-seen.st_size // BLOCK)
        if len(blocks) < wanted and self._has_time():
            with open(path, "rb") as file:
                file.seek(len(blocks) * BLOCK)
                blocks.append(manifest.digest(file, BLOCK).hex())
                while len(blocks) < wanted and self._has_time():
                    blocks.append(manifest.digest(file, BLOCK).hex())
            self._known[path] = [seen.st_size, seen.st_mtime_ns, blocks]
        self.size += seen.st_size
        self.hashed += min(len(blocks) * BLOCK, seen.st_size)
        self.complete &= len(blocks) == wanted
        if len(blocks) == 1:
            return {"sha256": blocks[0]}
        several = {"block": BLOCK} if blocks else {}
        return {"sha256": hashlib.sha256(bytes.fromhex("".join(blocks))).hexdigest(), **several}

    def _has_time(self) -> bool:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._seconds
            return True
        return time.monotonic() < self._deadline
