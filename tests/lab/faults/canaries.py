"""What must outlive every fault: jobs that run, jobs that wait, and files on the share and on scratch."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

from tests.lab.backup.survivors import Jobs, shown

NAME = "slurmstead-canary"
SHARE = f"/share/home/alice/{NAME}"
SCRATCH = f"/scratch/{NAME}"

RUN = "sbatch --parsable --requeue --output=/dev/null --ntasks=1 --mem=16 --nodelist={} --wrap='sleep 7200'"
WAIT = "sbatch --parsable --output=/dev/null --begin=now+7200 --wrap=true"
WAITING = 3

ALIVE = ("RUNNING", "PENDING", "CONFIGURING")
KEPT = {"RUNNING": ("SubmitTime", "StartTime", "Restarts", "BatchHost"), "PENDING": ("SubmitTime",)}
"""What stays the same of a job whose machine was not switched off, by its state."""


@dataclasses.dataclass(frozen=True)
class Canaries:
    """Jobs by number as they were, those that run by worker, and the checksum of each file by machine and path."""

    jobs: Jobs
    running: dict[str, str]
    files: dict[str, str]

    def check(self, lab: Any, *lost_power: str) -> None:
        """See that all are there; a job on a machine that lost its power may have been started once more."""
        now = shown(lab)
        for number, before in self.jobs.items():
            after = now.get(number)
            assert after, f"job {number} is gone"
            assert after["JobState"] in ALIVE, f"job {number} is {after['JobState']} ({after.get('Reason')})"
            if before.get("BatchHost") not in lost_power:
                keys = (key for key in KEPT[before["JobState"]] if before.get(key) != after.get(key))
                changes = {key: (before.get(key), after.get(key)) for key in keys}
                assert not changes, f"job {number} was disturbed: {changes}"
        assert _files(lab) == self.files


def _files(lab: Any) -> dict[str, str]:
    """Return the checksum of each canary by machine and path."""
    command = f"cd / && timeout 60 sha256sum {SCRATCH} {SHARE}"
    said = lab.everywhere(lambda name: lab.root(name, f"sudo -u alice sh -c '{command}'"), lab.workers)
    return {
        f"{name}:{path}": digest
        for name, text in said.items()
        for digest, path in (line.split() for line in text.splitlines())
    }


def _wait_until_they_run(lab: Any, numbers: list[str], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    query = f"squeue --noheader --format=%T --jobs={','.join(numbers)}"
    while (seen := lab.user(query).split()) != ["RUNNING"] * len(numbers):
        assert time.monotonic() < until, f"the canaries {numbers} do not start: {seen}"
        time.sleep(2)


@contextlib.contextmanager
def canaries(lab: Any) -> Iterator[Canaries]:
    """A job on each worker, some that wait, and files with random content; all are gone in the end."""
    make = "head -c 1M /dev/urandom > {0} && chown alice: {0} && chmod 644 {0} && sync {0}"
    lab.everywhere(lambda name: lab.root(name, make.format(SCRATCH)), lab.workers)
    lab.user(f"head -c 1M /dev/urandom > {SHARE} && sync {SHARE}")
    commands = [*(RUN.format(name) for name in lab.workers), *[WAIT] * WAITING]
    try:
        numbers = lab.user(" && ".join(commands), seconds=180).split()
        _wait_until_they_run(lab, numbers[: len(lab.workers)])
        # slurmctld writes a change down within 5 s (SAVE_MAX_WAIT in src/slurmctld/state_save.c).
        time.sleep(6)
        jobs = {number: job for number, job in shown(lab).items() if number in numbers}
        yield Canaries(jobs, dict(zip(lab.workers, numbers, strict=False)), _files(lab))
    finally:
        lab.insist(lab.control, f"scancel --user=alice && rm -f {SHARE}")
        lab.everywhere(lambda name: lab.insist(name, f"rm -f {SCRATCH}"), lab.workers)
