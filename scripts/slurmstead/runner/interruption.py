"""Interrupts a run without leaving processes behind."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

from slurmstead.errors import Interrupted
from slurmstead.runner import processes

GRACE_SECONDS = 10
"""Seconds after which the processes of an interrupted run are killed."""


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a command; not SIGHUP if it is ignored, as nohup(1) wants.

    SIGINT is always one of them: a shell's background jobs ignore it.
    """
    hangup = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hangup]


class Cancellation:
    """Ends a run on a signal: Ansible and its child processes get a signal, then are killed."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._requests = 0
        self._deadline = 0.0
        self._seen: list[processes.Process] = []

    def request(self, number: int, _frame: FrameType | None = None) -> None:
        """Record a signal; a second one ends the grace period."""
        self.number = self.number or number
        self._requests += 1

    def due(self) -> bool:
        """Send the signals once; return True when ansible-runner must stop waiting for the process."""
        if self.number is None:
            return False
        running = processes.descendants(os.getpid())
        self._seen += [process for process in running if process not in self._seen]
        if not self._deadline:
            self._deadline = time.monotonic() + GRACE_SECONDS
            playbooks = [process for process in running if process.parent == os.getpid()]
            processes.send(playbooks, signal.SIGINT)
            # Ansible's workers have their own sessions and may be running a command on this computer.
            processes.send([process for process in running if process not in playbooks], signal.SIGTERM)
        return self._requests > 1 or time.monotonic() > self._deadline

    def finish(self) -> None:
        """Kill the remaining processes.

        :raises Interrupted: a signal was recorded
        """
        if self.number is None:
            return
        processes.end(self._seen, seconds=2)
        raise Interrupted(self.number, "Run the same command again to continue.")


@contextlib.contextmanager
def signals_to(cancellation: Cancellation) -> Iterator[None]:
    """Pass the signals that end a command to `cancellation` while the block runs."""
    before = {number: signal.signal(number, cancellation.request) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
