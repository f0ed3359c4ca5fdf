"""Ways round Slurm to a worker, one a test: each is closed to users. docs/login.md has the table of all.

Each test also shows that the way itself works: for root, on control, or with a job.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.login.conftest import as_user

LEFT = "setsid sh -c 'setsid sleep 611 & setsid sleep 612' >&- 2>&- <&- & sleep 1"
"""Leaves two processes, each in a session of its own; one has lost its parent."""

REFUSED = "journalctl --identifier={} --since={} | grep 'Authentication failure'"
"""What daemons of PAM print. By name: journald may find no unit for a process that has ended."""

PASSWORD = "only-of-this-test"


@pytest.fixture
def job(lab: Any, closed: str) -> Iterator[str]:
    """A job of alice that runs on the worker."""
    left = shlex.quote(f"{LEFT}; sleep 600")
    number = lab.user(f"sbatch --parsable --nodelist={closed} --output=/dev/null --wrap={left}")
    try:
        lab.insist(lab.control, f"squeue --noheader --job={number} --format=%T | grep RUNNING", 120)
        yield number
    finally:
        lab.user(f"scancel {number}")
    lab.wait_until_idle(120)


def test_ssh_without_a_job_is_refused_on_a_worker_only(lab: Any, closed: str, ssh: Callable[..., Any]) -> None:
    refused, control = ssh(closed, "alice"), ssh(lab.control, "alice")

    assert refused.returncode == 255
    assert control.returncode == 0, control.stderr


def test_ssh_with_a_job_is_a_part_of_it_and_ends_with_it(
    lab: Any, closed: str, job: str, ssh: Callable[..., Any]
) -> None:
    done = ssh(closed, "alice", f"cat /proc/self/cgroup; {LEFT.replace('61', '62')}")
    assert done.returncode == 0, done.stderr
    assert f"job_{job}" in done.stdout
    assert len(lab.root(closed, "pgrep --euid alice --full '^sleep 62'").split()) == 2

    lab.user(f"scancel {job}")
    lab.insist(closed, "! pgrep --euid alice", 120)
    assert ssh(closed, "alice").returncode == 255


def test_a_process_that_a_job_leaves_ends_with_the_job(lab: Any, closed: str, job: str) -> None:
    lab.insist(closed, "test $(pgrep --count --euid alice --full '^sleep 61') = 2", 30)

    lab.user(f"scancel {job}")
    lab.insist(closed, "! pgrep --euid alice", 120)
    assert "sleep 61" not in lab.root(closed, "ps -e -o args | grep sleep || true").replace("grep sleep", "")


def test_cron_runs_nothing_of_users(lab: Any, closed: str) -> None:
    lab.root(closed, "rm --force /tmp/cron-*")
    for user in ("alice", "root"):
        as_user(lab, closed, user, f"echo '* * * * * touch /tmp/cron-{user}' | crontab -")
    try:
        assert "cron-alice" in lab.root(closed, "crontab -u alice -l")
        lab.insist(closed, "test -e /tmp/cron-root", 150)
        lab.insist(closed, REFUSED.format("CRON", "-3min"), 30)
        assert lab.root(closed, "ls /tmp/cron-*") == "/tmp/cron-root"
    finally:
        lab.root(closed, "for user in alice root; do crontab -u $user -r; done; rm --force /tmp/cron-*")


def test_at_runs_nothing_of_users(lab: Any, closed: str, job: str) -> None:
    """Neither what alice asks for outside of her job, nor in it; root's, which is asked for last, runs."""
    since = lab.root(closed, "rm --force /tmp/at-*; date +@%s")
    try:
        outside = as_user(lab, closed, "alice", "echo touch /tmp/at-outside | at now")
        inside = lab.user(f"srun --jobid={job} --overlap sh -c 'echo touch /tmp/at-inside | at now' 2>&1")
        assert "job " in outside and "job " in inside, f"at accepts both: {outside} {inside}"
        lab.root(closed, "echo touch /tmp/at-root | at now 2>&1")
        lab.insist(closed, "test -e /tmp/at-root", 60)
        lab.insist(closed, f"test $({REFUSED.format('atd', since)} | wc --lines) = 2", 30)

        assert lab.root(closed, "ls /tmp/at-*") == "/tmp/at-root"
    finally:
        lab.root(closed, "atq | cut --fields=1 | xargs --no-run-if-empty atrm; rm --force /tmp/at-*")


def test_systemd_does_not_start_a_users_manager(lab: Any, closed: str) -> None:
    start = "loginctl enable-linger alice; systemctl start user@2001.service 2>&1 || echo refused"
    end = "loginctl disable-linger alice; systemctl stop user@2001.service; systemctl reset-failed"
    said, control = lab.root(closed, start), lab.root(lab.control, start)
    lab.root(closed, end)
    lab.root(lab.control, end)

    assert said.splitlines()[-1] == "refused"
    assert control == ""


def test_su_is_refused_to_users_and_not_to_root(lab: Any, closed: str) -> None:
    """With the right password: su would move its session out of the job's control group."""
    make = f"useradd --uid 2999 other && echo other:{PASSWORD} | chpasswd"
    change = f"echo {PASSWORD} | su --command='id --user --name' other"
    said = {}
    for name in (closed, lab.control):
        lab.root(name, make)
        try:
            said[name] = as_user(lab, name, "alice", change).splitlines()[-1]
        finally:
            lab.root(name, "userdel other")

    assert said[lab.control].endswith("other")
    assert said[closed].endswith("su: Authentication failure")
    assert lab.root(closed, "su --command='id --user --name' alice") == "alice"


@pytest.mark.kernel
def test_with_the_kernels_own_control_groups_ssh_is_a_part_of_the_job(
    lab: Any, closed: str, job: str, ssh: Callable[..., Any]
) -> None:
    done = ssh(closed, "alice", "cat /proc/self/cgroup")

    assert f"job_{job}" in done.stdout
    lab.user(f"scancel {job}")
    lab.insist(closed, "! pgrep --euid alice", 120)
