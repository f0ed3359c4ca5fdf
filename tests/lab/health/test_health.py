"""A worker on which something is wrong takes no jobs until it is right again; one that a person drained stays so.

STEAD_LAB=NAME pytest tests/lab/health

Faults are injected beneath the health check, which is then run by hand; one test waits for slurmctld to have it run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

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


LESS_MEMORY = over(
    "/proc/meminfo",
    # Half of what there is: less than the 95 % that are declared.
    "awk '/^MemTotal/ {$2 = int($2 / 2)} {print}' /proc/meminfo",
    r"memory \d+ MiB below the declared \d+ MiB",
)
TRACKING = "0A4D0003,10.77.0.3,11,1763632800.1,-42.0,0.0,0.0,1.2,0.0,0.05,0.001,0.002,64.2,Normal"

FAULTS = {
    "memory": LESS_MEMORY,
    "cpus": over("/sys/devices/system/cpu/online", "echo 0", r"CPUs \d+ below the declared \d+"),
    "cgroup": over("/sys/fs/cgroup/cgroup.controllers", "echo cpuset cpu io pids", "cgroup controller missing: memory"),
    "clock": over("/usr/bin/chronyc", rf"printf '#!/bin/sh\necho {TRACKING}\n'", "clock 42 s off"),
    "share missing": Fault(
        "systemctl stop share.automount share.mount", "systemctl start share.automount", "share /share is not mounted"
    ),
    "share read-only": Fault(
        "stat /share/. && mount -o remount,bind,ro /share",
        "mount -o remount,bind,rw /share",
        "share /share is read-only",
    ),
    "scratch missing": Fault("umount /scratch", "systemctl start scratch.mount", "scratch /scratch is not mounted"),
    "scratch full": Fault(
        "mount -t tmpfs -o size=8m tmpfs /scratch && ! dd if=/dev/zero of=/scratch/file bs=1M",
        "umount /scratch",
        r"scratch /scratch is full, 0 MiB left",
    ),
}


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


@pytest.fixture(autouse=True)
def idle(lab: Any) -> Iterator[None]:
    """The cluster, idle before and after each test."""
    lab.wait_until_idle(3 * INTERVAL)
    yield
    lab.wait_until_idle(3 * INTERVAL)


@pytest.fixture
def victim(lab: Any) -> str:
    """A worker with a disk of its own for scratch."""
    return next(str(name) for name in lab.workers if lab.variables[name].get("scratch_disks"))


def test_a_healthy_worker_is_left_alone(lab: Any) -> None:
    assert lab.everywhere(lambda name: lab.root(name, PROGRAM), lab.workers) == dict.fromkeys(lab.workers, "")
    assert {name: said(lab, name)[0] for name in lab.workers} == dict.fromkeys(lab.workers, "idle")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_drains_and_its_end_resumes(lab: Any, victim: str, fault: Fault) -> None:
    with broken(lab, victim, fault):
        state, reason = check(lab, victim)
    assert state == "drained"
    assert re.fullmatch(f"slurmstead: {fault.reason}", reason)

    check(lab, victim)
    # slurmctld has a resumed node register first.
    wait_for(lab, victim, "idle", 2 * INTERVAL)


def test_a_drain_of_a_person_outlives_a_fault_and_a_run(lab: Any, victim: str) -> None:
    with drained(lab, victim, "fan"):
        with broken(lab, victim, LESS_MEMORY):
            assert check(lab, victim) == ("drained", "fan")
        assert check(lab, victim) == ("drained", "fan")

        assert lab.ansible("--tags", "slurm").code == 0
        assert check(lab, victim) == ("drained", "fan")


def test_memory_that_goes_behind_slurms_back_is_seen_within_two_intervals(lab: Any, victim: str) -> None:
    with broken(lab, victim, LESS_MEMORY):
        reason = wait_for(lab, victim, "drained", 2 * INTERVAL)
    assert re.fullmatch(f"slurmstead: {LESS_MEMORY.reason}", reason)

    wait_for(lab, victim, "idle", 2 * INTERVAL)


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
