"""Notes of each fault whether it was survived, in the table that `stead faults` prints."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from slurmstead.lab import faults
from slurmstead.paths import ROOT

WIDTH = 200
"""Characters of a reason."""


def commit() -> str:
    """Return what is tested."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=7"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@dataclasses.dataclass
class Trials:
    """The faults that a cluster suffers together, by name in the table, with why each was not survived."""

    why: dict[str, str]
    ended: float = 0.0
    seconds: float = 0.0

    @property
    def lost(self) -> dict[str, str]:
        """Those that were not survived."""
        return {name: why for name, why in self.why.items() if why}

    def over(self) -> None:
        """The faults end now; from here on the cluster recovers."""
        self.ended = time.monotonic()

    def recovered(self) -> None:
        """The cluster is healthy."""
        self.seconds = time.monotonic() - self.ended

    def blame(self, name: str, why: str) -> None:
        """Note that one of the faults was not survived, and go on."""
        self.why[name] = self.why[name] or why


def note(lab: Any, name: str, why: str, seconds: float = 0.0, seed: int = 0, tested: str = "") -> None:
    """Write down how a fault ended; a fault that was survived has no `why`."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    trial = faults.Trial(not why, round(seconds, 1), why[:WIDTH])
    faults.record(faults.result_file(lab.directory), name, seed, trial, commit=tested or commit(), at=now)
    print(f"{name}, seed {seed}: {why or f'survived, healthy after {seconds:.0f} s'}")


@contextlib.contextmanager
def trials(lab: Any, *names: str, seed: int = 0) -> Iterator[Trials]:
    """Write down how faults ended, also when the test fails; a failure without a name is that of all of them."""
    found, tested, complete = Trials(dict.fromkeys(names, "")), commit(), False
    try:
        yield found
        complete = True
    except Exception as error:
        for name in names:
            found.blame(name, " ".join(str(error).split()) or type(error).__name__)
        raise
    finally:
        # An interruption of the suite says nothing of the cluster.
        if complete or found.lost:
            for name, why in found.why.items():
                note(lab, name, why, found.seconds, seed, tested)
