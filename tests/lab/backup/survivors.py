"""What is asked of jobs that must survive, and of the key."""

from __future__ import annotations

import base64
import time
from typing import Any

KEY = "/etc/munge/munge.key"

Jobs = dict[str, dict[str, str]]


def shown(lab: Any) -> Jobs:
    """Return what slurmctld knows of each job, by number."""
    lines = lab.root(lab.control, "scontrol --oneliner show job").splitlines()
    jobs = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines)
    return {job["JobId"]: job for job in jobs if "JobId" in job}


def states(lab: Any, numbers: list[str]) -> list[str]:
    """Return the state of each of some jobs; empty of one that is not known."""
    jobs = shown(lab)
    return [jobs.get(number, {}).get("JobState", "") for number in numbers]


def wait(lab: Any, numbers: list[str], state: str, seconds: float) -> None:
    """Wait until all of some jobs are in a state."""
    until = time.monotonic() + seconds
    while (seen := states(lab, numbers)) != [state] * len(numbers):
        assert time.monotonic() < until, f"expected {state} of {numbers}, seen {seen}"
        time.sleep(2)


def key_of(lab: Any, name: str) -> bytes:
    """Return the key of a machine."""
    return base64.b64decode(lab.root(name, f"base64 {KEY}"))


def forms(secret: bytes) -> list[bytes]:
    """The forms in which a key could be printed; parts of them, because lines are cut."""
    encoded = [base64.b64encode(secret[start:])[:40] for start in range(3)]
    return [secret[:32], secret[-32:], *encoded, secret[:20].hex().encode(), repr(secret[:12])[2:-1].encode()]
