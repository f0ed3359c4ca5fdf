"""Ending a run early without leaving anything of it behind."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

from slurmstead.errors import Interrupted
from slurmstead.runner import processes

GRACE_SECONDS = 10
"""How long an interrupted run may take to end by itself."""


class Cancellation:
    """Ends a run on a signal: Ansible is asked first, then whatever it started is told, then killed."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._requests = 0
        self._deadline = 0.0
        self._seen: list[processes.Process] = []

    def request(self, number: int, _frame: FrameType | None = None) -> None:
        """Take note of a signal; a second one shortens the grace."""
        self.number = self.number or number
        self._requests += 1

    def due(self) -> bool:
        """Bring the end forward; True when ansible-runner is to give up on the process."""
        if self.number is None:
            return False
        running = processes.descendants(os.getpid())
        self._seen += [process for process in running if process not in self._seen]
        if not self._deadline:
            self._deadline = time.monotonic() + GRACE_SECONDS
            playbooks = [process for process in running if process.parent == os.getpid()]
            processes.send(playbooks, signal.SIGINT)
            # Ansible's workers are sessions of their own and may be in the middle of a command on this computer.
            processes.send([process for process in running if process not in playbooks], signal.SIGTERM)
        return self._requests > 1 or time.monotonic() > self._deadline

    def finish(self) -> None:
        """Leave no process behind, then tell the caller."""
        if self.number is None:
            return
        processes.end(self._seen, seconds=2)
        raise Interrupted(self.number, "The same command carries on from here.")


@contextlib.contextmanager
def signals_to(cancellation: Cancellation) -> Iterator[None]:
    """Hand the signals that end a command to `cancellation` while the block runs."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, cancellation.request) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
