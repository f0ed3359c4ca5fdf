"""The ledger of a run: the number of each of its Slurm jobs. It can be updated on a full disk."""

import json
import os
import pathlib
import time
from collections.abc import Collection
from typing import Any

from slurmstead.client.remote import arrays, slurm, store
from slurmstead.client.remote.arrays import Chunk

BYTES_PER_CHUNK = 200
BYTES = 4096

ATTEMPTS = 5


class Ledger:
    """The chunks of a run, and the job of each submitted chunk; each change is on the disk before the call returns.

    The file has its final size from the start: later updates need no further disk blocks.
    """

    def __init__(self, run: pathlib.Path) -> None:
        self.path = run / "ledger.json"
        self._started = run / "started"
        found = self._read()
        self.parts: list[Chunk | None] = [Chunk(*part) if part else None for part in found.get("parts", [])]
        self.jobs: dict[int, str] = {int(chunk): job for chunk, job in found.get("jobs", {}).items()}
        self.tried: dict[int, float] = {int(chunk): when for chunk, when in found.get("tried", {}).items()}

    @property
    def complete(self) -> bool:
        """Whether every chunk has a Slurm job."""
        return bool(self.parts) and len(self.jobs) == len(self.parts)

    def slurm_names(self, task: int | None) -> list[str]:
        """Return Slurm's names of a task, or of the whole run; chunks without a job are left out."""
        if task is None:
            return list(self.jobs.values())
        return [
            f"{self.jobs[chunk]}_{task - part.offset}"
            for chunk, part in enumerate(self.parts)
            if part and chunk in self.jobs and task - part.offset in arrays.parse(part.indices)[0]
        ]

    def jobs_of(self, tasks: Collection[int]) -> list[str]:
        """Return the jobs that have at least one of these tasks."""
        return [
            self.jobs[chunk]
            for chunk, part in enumerate(self.parts)
            if not part or any(part.offset + index in tasks for index in arrays.parse(part.indices)[0])
        ]

    def open(self, parts: list[Chunk | None]) -> None:
        """Set the chunks of the run, which has no job."""
        if self.parts != parts:
            if not self.parts and self.path.exists():
                # The file is unreadable: any chunk may have been submitted.
                self.tried = dict.fromkeys(range(len(parts)), time.time())
            self.parts = parts
            store.write(self.path, self._text())

    def trying(self, chunk: int) -> None:
        """Record that sbatch is about to be called."""
        self.tried[chunk] = time.time()
        self._save()

    def submitted(self, chunk: int, job: str) -> None:
        """Record the job of a chunk."""
        self.jobs[chunk] = job
        self._save()

    def owner(self, chunk: int) -> str | None:
        """Return the job of a chunk: the job that started it, or, before that, the one that sbatch reported."""
        try:
            return os.readlink(self._started / str(chunk))
        except OSError:
            return self.jobs.get(chunk)

    def find(self, rows: list[slurm.Row], run: str) -> None:
        """Record jobs that are missing here but are in Slurm's queue or have already started."""
        # Jobs that ended before the attempt are of a removed run with this ID; one that ran since has left its mark.
        own = (row for row in rows if row.run == run and not (row.ended and 0 < row.end < self.tried.get(row.chunk, 0)))
        # Of several jobs the newest that has not ended: an earlier one was withdrawn.
        seen = {row.chunk: row.job for row in sorted(own, key=lambda row: (not row.ended, int(row.job)))}
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
        """Return the file's content; while another command overwrites it, retry."""
        for _ in range(ATTEMPTS):
            found = store.read_json(self.path)
            if found is not None or not self.path.exists():
                break
            time.sleep(0.05)
        return found or {}

    def _text(self) -> bytes:
        value: dict[str, Any] = {"parts": self.parts, "jobs": self.jobs, "tried": self.tried}
        # Always padded to the same length: a shorter text would leave the end of the previous one in the file.
        return json.dumps(value).encode().ljust(BYTES + BYTES_PER_CHUNK * len(self.parts) + len(json.dumps(self.parts)))

    def _save(self) -> None:
        descriptor = os.open(self.path, os.O_WRONLY)
        try:
            os.pwrite(descriptor, self._text(), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
