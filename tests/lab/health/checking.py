"""A worker's health check on the lab: faults, the reason of a drain, and waiting for a state."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

PROGRAM = "/usr/local/lib/slurmstead/health-check"

INTERVAL = 60


"""HealthCheckInterval of the role slurm."""

FAKE = "/var/tmp/slurmstead-health"


"""Not below /run, which is mounted noexec."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """Shell commands that break something and fix it, and what is reported."""

    inject: str
    remove: str
    reason: str


def over(path: str, content: str, reason: str) -> Fault:
    """Another content of a file, which a command prints; the file itself stays as it is."""
    copy = f"{content} > {FAKE} && chmod --reference={path} {FAKE} && mount --bind {FAKE} {path}"
    return Fault(copy, f"umount {path}; rm -f {FAKE}", reason)


def said(lab: Any, worker: str) -> tuple[str, str]:
    """Return the state and the reason that sinfo shows of a worker."""
    state, _, reason = lab.root(lab.control, f"sinfo --noheader --nodes={worker} --format='%T %E'").partition(" ")
    return state, reason.strip()


def check(lab: Any, worker: str) -> tuple[str, str]:
    """Run the health check as slurmd does; returns what sinfo shows afterwards."""
    lab.root(worker, f"env -i SLURMD_NODENAME={worker} {PROGRAM}")
    return said(lab, worker)


def wait_for(lab: Any, worker: str, state: str, seconds: float) -> str:
    """Wait until a worker is in a state; returns the reason."""
    started = time.monotonic()
    while (seen := said(lab, worker))[0] != state:
        assert time.monotonic() - started < seconds, f"{worker} is not {state} after {seconds:.0f} s: {seen}"
        time.sleep(2)
    return seen[1]


@contextlib.contextmanager
def broken(lab: Any, worker: str, fault: Fault) -> Iterator[None]:
    """Break something for a while."""
    try:
        lab.root(worker, fault.inject)
        yield
    finally:
        lab.root(worker, fault.remove)


@contextlib.contextmanager
def drained(lab: Any, worker: str, reason: str) -> Iterator[None]:
    """A worker that a person drained."""
    update = f"scontrol update nodename={worker}"
    try:
        lab.root(lab.control, f"{update} state=drain reason='{reason}'")
        yield
    finally:
        lab.root(lab.control, f"{update} state=resume")
