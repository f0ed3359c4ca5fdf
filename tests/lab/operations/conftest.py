"""Jobs, drains and boots that operations on machines have to respect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def submit(lab: Any) -> Iterator[Callable[..., str]]:
    """Submit a job of an ordinary user to a worker, that writes a line when it ends; what is left is cancelled."""

    def start(node: str, seconds: int, *options: str, wait: bool = True) -> str:
        words = f"--nodelist={node} --ntasks=1 --mem=50 --no-requeue --output=/dev/null {' '.join(options)}"
        job = str(lab.user(f"sbatch --parsable {words} --wrap='sleep {seconds} && echo ended >> ended-$SLURM_JOB_ID'"))
        if wait:
            lab.user(f"until squeue --noheader --job={job} --states=running | grep -q .; do sleep 1; done")
        return job

    yield start
    lab.user("scancel --user=$USER; while squeue --noheader --user=$USER | grep -q .; do sleep 1; done; rm -f ended-*")


@pytest.fixture
def ended_once(lab: Any) -> Callable[[str], bool]:
    """Say whether a job came to its end, and did so once."""
    return lambda job: lab.user(f"cat ended-{job} || true") == "ended"


@pytest.fixture
def drained(lab: Any) -> Iterator[Callable[[str, str], None]]:
    """Drain a worker as a person would; it is resumed in the end."""
    names: list[str] = []

    def drain(name: str, reason: str) -> None:
        names.append(name)
        lab.root(lab.control, f"scontrol update nodename={name} state=drain reason='{reason}'")

    yield drain
    for name in names:
        lab.root(lab.control, f"scontrol update nodename={name} state=resume")
    lab.wait_until_idle(120)


@pytest.fixture
def job_state(lab: Any) -> Callable[[str], str]:
    """Return the state of a job; slurmctld knows those that ended within the last minutes."""
    return lambda job: str(lab.root(lab.control, f"squeue --noheader --states=all --job={job} --format=%T"))


@pytest.fixture
def boot_ids(lab: Any) -> Callable[[], dict[str, str]]:
    """Return what is another one after each boot, by machine."""
    return lambda: dict(lab.everywhere(lambda name: lab.root(name, "cat /proc/sys/kernel/random/boot_id")))


@pytest.fixture
def chosen(lab: Any) -> str:
    """The worker that an operation works on."""
    return str(lab.workers[-1])
