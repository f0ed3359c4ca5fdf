"""The ledger of a run: which jobs of Slurm it became. It can be written on a full disk."""

import json
import os
import pathlib
import time
from typing import Any

from slurmstead.client.remote import arrays, slurm, store
from slurmstead.client.remote.arrays import Chunk

BYTES_PER_CHUNK = 200
BYTES = 4096

ATTEMPTS = 5


class Ledger:
    """Which chunks of a run are to be submitted, and which are; every change is on the disk before it counts.

    The file gets its size when it is made: what is written over it later needs no further block of the disk.
    """

    def __init__(self, run: pathlib.Path) -> None:
        self._path = run / "ledger.json"
        self._started = run / "started"
        found = self._read()
        self.parts: list[Chunk | None] = [Chunk(*part) if part else None for part in found.get("parts", [])]
        self.jobs: dict[int, str] = {int(chunk): job for chunk, job in found.get("jobs", {}).items()}
        self.tried: dict[int, float] = {int(chunk): when for chunk, when in found.get("tried", {}).items()}

    @property
    def complete(self) -> bool:
        """Whether every chunk is a job of Slurm."""
        return bool(self.parts) and len(self.jobs) == len(self.parts)

    def slurm_names(self, task: int | None) -> list[str]:
        """Return what Slurm calls a task of an array, or all of the run; nothing of what is no job yet."""
        if task is None:
            return list(self.jobs.values())
        return [
            f"{self.jobs[chunk]}_{task - part.offset}"
            for chunk, part in enumerate(self.parts)
            if part and chunk in self.jobs and task - part.offset in arrays.parse(part.indices)[0]
        ]

    def open(self, parts: list[Chunk | None]) -> None:
        """Say which chunks there are; what is known of them stays."""
        if not self.parts:
            if self._path.exists():
                # Nobody can read what was tried before: all of it may have been.
                self.tried = dict.fromkeys(range(len(parts)), time.time())
            self.parts = parts
            store.write(self._path, self._text())

    def trying(self, chunk: int) -> None:
        """Say that sbatch is about to be called."""
        self.tried[chunk] = time.time()
        self._save()

    def submitted(self, chunk: int, job: str) -> None:
        """Say which job a chunk became."""
        self.jobs[chunk] = job
        self._save()

    def owner(self, chunk: int) -> str | None:
        """Return the job that a chunk is: the one that began it, before that the one that sbatch named."""
        try:
            return os.readlink(self._started / str(chunk))
        except OSError:
            return self.jobs.get(chunk)

    def find(self, rows: list[slurm.Row], run: str) -> None:
        """Take note of jobs that became known in another way: from Slurm, or because they have begun."""
        seen = {row.chunk: row.job for row in rows if row.run == run}
        for chunk in range(len(self.parts)):
            try:
                seen[chunk] = os.readlink(self._started / str(chunk))
            except OSError:
                pass
        new = {chunk: job for chunk, job in seen.items() if chunk not in self.jobs}
        if new:
            self.jobs.update(new)
            self._save()

    def _read(self) -> dict[str, Any]:
        """Return what the file says; one that is just written over by another command is read again."""
        for _ in range(ATTEMPTS):
            found = store.read_json(self._path)
            if found is not None or not self._path.exists():
                break
            time.sleep(0.05)
        return found or {}

    def _text(self) -> bytes:
        value: dict[str, Any] = {"parts": self.parts, "jobs": self.jobs, "tried": self.tried}
        # As long each time, however long the lists of indices are: a shorter text would leave the end of a longer one.
        return json.dumps(value).encode().ljust(BYTES + BYTES_PER_CHUNK * len(self.parts) + len(json.dumps(self.parts)))

    def _save(self) -> None:
        descriptor = os.open(self._path, os.O_WRONLY)
        try:
            os.pwrite(descriptor, self._text(), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
