"""`stead shutdown` and `start`: a cluster goes off in order, and comes back with its queue and its drains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.lab import machines as stead_lab
from slurmstead.paths import PLAYBOOKS

START_MINUTES = "15"


def switch_on(lab: Any, hosts: str) -> None:
    """Start the machines of the lab that are off, all at once."""
    run = lab.ansible("--limit", hosts, str(PLAYBOOKS / "create-lab.yml"), seconds=1200)
    assert run.code == 0, run.output


def states(lab: Any) -> dict[str, str]:
    """Return the state of each worker, and its reason where it has one."""
    lines = lab.root(lab.control, "sinfo --noheader --Node --format='%N %T %E'").splitlines()
    return {name: words.removesuffix(" none") for name, words in (line.strip().split(" ", 1) for line in lines)}


@pytest.fixture
def on_again(lab: Any, stead: Callable[..., Any]) -> Iterator[None]:
    """Machines that are on, and workers that take jobs, in the end."""
    yield
    switch_on(lab, "all")
    stead("start", "--deadline", START_MINUTES, seconds=1800)


def test_a_cluster_with_a_job_is_not_shut_down(
    lab: Any, stead: Callable[..., Any], submit: Callable[..., str], job_state: Any
) -> None:
    busy = lab.workers[0]
    pids = lab.pids()
    job = submit(busy, 900)

    done = stead("shutdown")

    assert done.returncode == ExitCode.TASK_FAILED
    assert f"nothing was changed, because of job {job} (running on {busy})" in done.stdout
    assert job_state(job) == "RUNNING"
    assert lab.pids() == pids
    assert not [words for words in states(lab).values() if "drain" in words]


def test_a_dry_run_switches_nothing_off(lab: Any, stead: Callable[..., Any]) -> None:
    lab.wait_until_idle(120)
    pids = lab.pids()

    done = stead("shutdown", "--check")

    assert done.returncode == ExitCode.OK, done.stdout
    for name in lab.names:
        assert f"{name} would be switched off" in done.stdout
    assert lab.pids() == pids
    assert set(states(lab).values()) == {"idle"}


def test_a_cluster_goes_off_and_comes_back_with_its_queue_and_its_drains(
    lab: Any,
    stead: Callable[..., Any],
    drained: Callable[[str, str], None],
    submit: Callable[..., str],
    job_state: Any,
    on_again: None,
) -> None:
    first, resting, late = lab.workers
    drained(resting, "fan is loud")
    waiting = submit(first, 1, "--begin=now+1day", wait=False)

    done = stead("shutdown", seconds=1800)

    assert done.returncode == ExitCode.OK, done.stdout
    assert not [name for name, pid in stead_lab.pids(lab.directory).items() if pid]
    ends = [done.stdout.index(f"{name} is off") for name in (*lab.workers, lab.control)]
    assert max(ends) == ends[-1], "control did not go off last"

    done = stead("shutdown")

    assert done.returncode == ExitCode.TASK_FAILED, done.stdout
    assert "No machine answers, and nothing was switched off" in done.stdout

    done = stead("start", "--deadline", "0")

    assert done.returncode == ExitCode.UNREACHABLE
    for name in lab.names:
        assert f"{name} does not answer; is it on?" in done.stdout
    assert f"{lab.control} could not be reached" in done.stdout

    switch_on(lab, f"all,!{late}")
    done = stead("start", "--deadline", "5", seconds=1800)

    assert done.returncode == ExitCode.UNREACHABLE
    assert f"{late} does not answer; is it on?" in done.stdout
    assert f"{late} could not be reached" in done.stdout
    seen = states(lab)
    assert (seen[first], seen[resting]) == ("idle", "drained fan is loud")
    # Slurm 24.11 adds that it does not answer.
    assert "stead shutdown" in seen[late]

    switch_on(lab, late)
    done = stead("start", "--deadline", START_MINUTES, seconds=1800)

    assert done.returncode == ExitCode.OK, done.stdout
    assert states(lab) == {first: "idle", resting: "drained fan is loud", late: "idle"}
    assert job_state(waiting) == "PENDING"

    done = stead("start")

    assert done.returncode == ExitCode.OK, done.stdout
    assert "changed: nothing" in done.stdout


def test_a_shutdown_ends_what_another_one_began(lab: Any, stead: Callable[..., Any], on_again: None) -> None:
    lab.wait_until_idle(180)
    lab.cut_power(lab.workers[0])
    lab.root(lab.control, f"scontrol update nodename={lab.workers[0]} state=drain reason='stead shutdown'")
    # As where control is a worker too, and was left on.
    lab.root(lab.control, "systemctl stop slurmctld")

    done = stead("shutdown", seconds=1800)

    assert done.returncode == ExitCode.OK, done.stdout
    assert not [name for name, pid in stead_lab.pids(lab.directory).items() if pid]
