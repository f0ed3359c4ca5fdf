"""An operator's own checks, prologs and epilogs from files/, on workers of the lab."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.health.checking import INTERVAL, Fault, broken, check, said, wait_for

DROP_INS = {
    "health.d/disk": "[ ! -e /run/stead-fault ] || { echo checking; echo 'disk 3 is gone'; exit 1; }",
    "health.d/slow": "[ ! -e /run/stead-hang ] || sleep 4321",
    "prolog.d/own": "[ ! -e /run/stead-prolog ] && echo $SLURM_JOB_ID >> /run/stead-before",
    "epilog.d/own": "echo $SLURM_JOB_ID >> /run/stead-after",
}

FLAGS = "/run/stead-fault /run/stead-hang /run/stead-prolog /run/stead-before /run/stead-after"

INSTALLED = {
    "scratch : Configure the scratch directory of each job",
    "slurmd : Configure slurmd and its health check",
}

LIBRARY = "/usr/local/lib/slurmstead"


@pytest.fixture(scope="module")
def site(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """The inventory of the lab as a site with drop-ins, which the runs of this module take; none is left after it."""
    copy = tmp_path_factory.mktemp("site")
    shutil.copytree(lab.inventory, copy, dirs_exist_ok=True)
    for name, script in DROP_INS.items():
        path = copy / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    before, lab.inventory = lab.inventory, copy / "hosts.yml"
    yield copy
    for name in lab.workers:
        lab.root(name, f"rm -f {FLAGS}")
    lab.inventory = before
    run = lab.ansible("--tags", "scratch,slurm")
    assert run.code == 0, run.output


def installed(lab: Any, worker: str) -> list[str]:
    """Return owner, mode and path of the drop-ins and their directories on a worker."""
    return str(lab.root(worker, f"cd {LIBRARY} && find *.d -printf '%u:%g %m %p\\n' | sort -k 3")).splitlines()


DIRECTORIES = [f"root:root 755 {name}" for name in ("epilog.d", "health.d", "prolog.d")]


def test_drop_ins_are_shown_then_installed_once(lab: Any, site: pathlib.Path) -> None:
    assert lab.everywhere(lambda name: installed(lab, name), lab.workers) == dict.fromkeys(lab.workers, DIRECTORIES)

    preview = lab.ansible("--tags", "scratch,slurm", "--check", "--diff")
    assert {name: set(tasks) for name, tasks in preview.changed.items()} == dict.fromkeys(lab.workers, INSTALLED)
    assert f"+++ {LIBRARY}/health.d/disk" in preview.output
    assert installed(lab, lab.workers[0]) == DIRECTORIES

    run = lab.ansible("--tags", "scratch,slurm")
    assert run.code == 0, run.output
    assert {name: set(tasks) for name, tasks in run.changed.items()} == dict.fromkeys(lab.workers, INSTALLED)
    expected = sorted([*DIRECTORIES, *(f"root:root 755 {name}" for name in DROP_INS)], key=lambda line: line.split()[2])
    assert lab.everywhere(lambda name: installed(lab, name), lab.workers) == dict.fromkeys(lab.workers, expected)

    second = lab.ansible("--tags", "scratch,slurm")
    assert (second.code, second.changed) == (0, {})


DROP_IN_FAULTS = {
    "fails": Fault("touch /run/stead-fault", "rm -f /run/stead-fault", "disk: disk 3 is gone"),
    "hangs": Fault("touch /run/stead-hang", "rm -f /run/stead-hang", "slow: not finished after 15 s"),
}


@pytest.mark.parametrize("fault", DROP_IN_FAULTS.values(), ids=DROP_IN_FAULTS)
def test_a_drop_in_drains_and_its_end_resumes(lab: Any, site: pathlib.Path, victim: str, fault: Fault) -> None:
    with broken(lab, victim, fault):
        # By slurmd, as slurmctld asks for it.
        reason = wait_for(lab, victim, "drained", 2 * INTERVAL)
        assert reason == f"slurmstead: {fault.reason}"
        assert said(lab, next(name for name in lab.workers if name != victim)) == ("idle", "none")

    wait_for(lab, victim, "idle", 2 * INTERVAL)
    assert lab.root(victim, "pgrep --full '[s]leep 4321' || echo none") == "none"


def test_the_programs_before_and_after_a_job_run(lab: Any, site: pathlib.Path, victim: str) -> None:
    lab.user(f"srun --nodelist={victim} true")
    lab.wait_until_idle(60)

    seen = lab.insist(victim, "cat /run/stead-before /run/stead-after", 30).split()
    assert seen == [seen[0], seen[0]]


def test_no_job_starts_where_a_program_before_it_fails(lab: Any, site: pathlib.Path, victim: str) -> None:
    with broken(lab, victim, Fault("touch /run/stead-prolog", "rm -f /run/stead-prolog", "")):
        job = lab.user(f"cd /tmp && sbatch --parsable --nodelist={victim} --wrap='touch /tmp/stead-ran'")
        wait_for(lab, victim, "drained", 60)
    try:
        assert said(lab, victim)[1] == "Prolog error"
        assert lab.root(lab.control, f"squeue --noheader --jobs={job} --format=%T") == "PENDING"
        assert lab.root(victim, "ls /tmp/stead-ran || echo none") == "none"
        # Another's drain, as one of an administrator.
        assert check(lab, victim) == ("drained", "Prolog error")
    finally:
        lab.root(lab.control, f"scancel {job}; scontrol update nodename={victim} state=resume")


def test_a_drop_in_that_leaves_the_site_leaves_the_workers(lab: Any, site: pathlib.Path) -> None:
    for name in ("health.d/disk", "prolog.d/own", "epilog.d/own"):
        (site / "files" / name).unlink()

    run = lab.ansible("--tags", "scratch,slurm")

    assert run.code == 0, run.output
    assert {name: set(tasks) for name, tasks in run.changed.items()} == dict.fromkeys(lab.workers, INSTALLED)
    left = sorted([*DIRECTORIES, "root:root 755 health.d/slow"], key=lambda line: line.split()[2])
    assert lab.everywhere(lambda name: installed(lab, name), lab.workers) == dict.fromkeys(lab.workers, left)
