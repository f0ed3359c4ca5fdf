"""Jobs fill the machine that fits best, so that others stay whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest


class Queue:
    """Jobs of an ordinary user that hold what they got until the test ends."""

    def __init__(self, lab: Any) -> None:
        self.lab = lab

    def submit(self, *options: object) -> str:
        """Return the number of a job that sleeps."""
        words = " ".join(str(option) for option in options)
        return str(self.lab.user(f"sbatch --parsable --output=/dev/null --mem=50M {words} --wrap 'sleep 600'"))

    def nodes(self, jobs: list[str]) -> list[str]:
        """Return the node of each job when all of them run."""
        deadline = time.monotonic() + 60
        while True:
            rows = self.lab.user(f"squeue --noheader --jobs={','.join(jobs)} --format='%i %t %N'").splitlines()
            seen = {row.split()[0]: row.split()[1:] for row in rows}
            if all(seen.get(job, [""])[0] == "R" for job in jobs):
                return [seen[job][1] for job in jobs]
            assert time.monotonic() < deadline, f"not all of {jobs} run: {seen}"
            time.sleep(1)


@pytest.fixture
def queue(lab: Any) -> Iterator[Queue]:
    """An empty queue."""
    lab.wait_until_idle(120)
    yield Queue(lab)
    lab.user("scancel --me")
    lab.wait_until_idle(120)


@pytest.fixture
def cpus(lab: Any) -> int:
    """How many CPUs a worker of the lab has."""
    return int(lab.user("sinfo --noheader --format=%c").split()[0])


def test_small_jobs_fill_one_node_and_large_ones_still_fit(lab: Any, queue: Queue, cpus: int) -> None:
    small = [queue.submit("--cpus-per-task=1") for _ in range(cpus)]
    (filled,) = set(queue.nodes(small))
    large = [queue.submit(f"--cpus-per-task={cpus}") for _ in lab.workers[1:]]

    assert sorted(queue.nodes(large)) == sorted(set(lab.workers) - {filled})


def test_a_small_job_goes_where_least_is_free(lab: Any, queue: Queue) -> None:
    last = sorted(lab.workers)[-1]
    queue.nodes([queue.submit("--cpus-per-task=1", f"--nodelist={last}")])

    assert queue.nodes([queue.submit("--cpus-per-task=1")]) == [last]
