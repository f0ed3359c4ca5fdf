"""The sruns of the smoke test, as processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

GRACE = 2.0
"""Seconds in which a terminated srun releases its job."""


@dataclass
class Step:
    """A running srun."""

    kind: str
    name: str
    nodes: list[str]
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]
    launched: float
    start_by: float
    """When it is ended if it still waits (monotonic seconds)."""
    running: float = 0.0
    """When squeue first showed it as running (monotonic seconds); 0 while it waits."""
    stopped: str = ""
    """Why the test ended it."""

    @property
    def going(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def read(self, file: IO[bytes]) -> str:
        """Its output so far."""
        file.seek(0)
        return file.read().decode(errors="replace")


def stop(steps: Iterable[Step], why: str) -> None:
    """Terminate sruns; each then releases its job."""
    going = [step for step in steps if step.going]
    for step in going:
        step.stopped = why
        step.process.terminate()
    until = time.monotonic() + GRACE
    for step in going:
        try:
            step.process.wait(max(0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            step.process.kill()
            step.process.wait()
