"""Jobs of an ordinary user, submitted on the head node as README says."""

from __future__ import annotations

import pathlib
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = (ROOT / "examples/job.sh").read_text()

SECONDS = 30
"""Within which an Epilog has run after its job."""


@pytest.fixture
def directory(lab: Any) -> Iterator[str]:
    """A directory of the user's on the share."""
    name = f"test-{time.time_ns()}"
    lab.user(f"mkdir {name}")
    yield name
    lab.user(f"rm -r {name}")


def test_srun_reaches_every_worker(lab: Any) -> None:
    names = lab.user(f"srun --nodes={len(lab.workers)} hostname").split()

    assert sorted(names) == lab.workers


def test_the_example_job_runs_and_leaves_its_output_on_the_share(lab: Any, directory: str) -> None:
    lab.user(f"cat > {directory}/job.sh <<'END'\n{EXAMPLE}\nEND")

    job = lab.user(f"cd {directory} && sbatch --wait --parsable job.sh", seconds=180)

    lines = sorted(lab.user(f"cat {directory}/hello-{job}.out").splitlines())
    assert lines == [f"{name}: 1 CPU, scratch in /scratch/job-{job}" for name in lab.workers]
    # sbatch --wait returns before the Epilog has run, until which squeue shows the job.
    lab.wait_until_idle(SECONDS)


def test_a_job_gets_the_cpus_that_it_asks_for(lab: Any) -> None:
    cpus = lab.user("srun --nodes=1 --ntasks=1 --cpus-per-task=2 nproc")

    assert cpus == "2"


def test_a_job_writes_as_its_user_on_the_share(lab: Any, directory: str) -> None:
    lab.user(f"srun --nodes={len(lab.workers)} sh -c 'hostname > {directory}/$(hostname)'")

    assert lab.user(f"cd {directory} && stat --format='%n %U %G' *").splitlines() == [
        f"{name} alice alice" for name in lab.workers
    ]


def test_each_job_has_scratch_of_its_own_which_ends_with_it(lab: Any) -> None:
    show = 'test "$TMPDIR" = "$SCRATCH" && echo kept > $SCRATCH/file && stat --format="$(hostname) %n %a %U" $SCRATCH'

    lines = lab.user(f"srun --nodes={len(lab.workers)} sh -c '{show}'").splitlines()

    (path,) = {line.split()[1] for line in lines}
    assert re.fullmatch(r"/scratch/job-\d+", path)
    assert sorted(lines) == [f"{name} {path} 700 alice" for name in lab.workers]
    gone = f"for second in $(seq {SECONDS}); do test -e {path} || exit 0; sleep 1; done; exit 1"
    lab.everywhere(lambda name: lab.root(name, gone), lab.workers)
