"""Workers that are closed to users without a job do not lock an administrator out. Ways in are in test_ways_round.py.

STEAD_LAB=NAME pytest tests/lab/login
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS
from tests.lab.login.conftest import as_user, mount

LOGIN = str(PLAYBOOKS / "configure-login.yml")
MARKED = "cat /etc/pam.d/sshd | grep --count 'BEGIN slurmstead' || true"
WITHOUT_PAM = "/etc/ssh/sshd_config.d/00-own.conf"


def test_a_second_run_changes_nothing(closed: str, configure: Callable[..., Any]) -> None:
    run = configure()

    assert closed and run.code == 0, run.output[-5000:]
    assert run.changed == {}


def test_an_administrator_logs_in(closed: str, ssh: Callable[..., Any]) -> None:
    done = ssh(closed, "debian", "sudo --non-interactive id --user")

    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


def test_users_on_control_are_limited_and_root_is_not(lab: Any, closed: str) -> None:
    show = "systemctl show --property=MemoryMax,CPUQuotaPerSecUSec"
    assert closed

    assert "CPUQuotaPerSecUSec=2s" in lab.root(lab.control, f"{show} user-2001.slice")
    assert "MemoryMax=infinity" not in lab.root(lab.control, f"{show} user-2001.slice")
    assert "MemoryMax=infinity" in lab.root(lab.control, f"{show} user-0.slice")


@pytest.mark.parametrize(("user", "limited"), [("alice", True), ("root", False)])
def test_what_cron_and_at_run_on_control_counts_for_its_user(lab: Any, closed: str, user: str, limited: bool) -> None:
    assert closed
    command = f"cat /proc/self/cgroup > /tmp/slice-{{}}-{user}"
    try:
        as_user(lab, lab.control, user, f"echo '* * * * * {command.format('cron')}' | crontab -")
        as_user(lab, lab.control, user, f"echo '{command.format('at')}' | at now")
        for service in ("cron", "at"):
            lab.insist(lab.control, f"test -s /tmp/slice-{service}-{user}", 150)
            assert ("user-2001.slice" in lab.root(lab.control, f"cat /tmp/slice-{service}-{user}")) == limited
    finally:
        lab.root(lab.control, f"crontab -u {user} -r; rm --force /tmp/slice-*-{user}")


def test_a_worker_whose_sshd_does_not_ask_pam_is_reported(lab: Any, closed: str, configure: Callable[..., Any]) -> None:
    lab.root(closed, f"echo UsePAM no > {WITHOUT_PAM}")
    try:
        run = configure("--limit", closed)
    finally:
        lab.root(closed, f"rm {WITHOUT_PAM}")

    assert run.code != 0
    assert "sshd does not ask PAM: remove `UsePAM no` from" in " ".join(run.output.split())


FAULTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    # It refuses new logins while the connection of an earlier run goes on.
    "nologin": ("echo no > /etc/nologin", "rm --force /etc/nologin", {}),
    # Neither in the list nor in the group sudo, its account has to have a job.
    "no administrator": ("gpasswd --delete debian sudo", "gpasswd --add debian sudo", {"__login_users": []}),
}
"""What makes a run lock Ansible out, what ends that, and variables of the run."""


@pytest.mark.parametrize(("begin", "end", "variables"), FAULTS.values(), ids=FAULTS)
def test_files_with_which_ansible_could_not_log_in_are_restored(
    lab: Any, closed: str, configure: Callable[..., Any], begin: str, end: str, variables: dict[str, Any]
) -> None:
    opened = configure(LOGIN, plain=True, login_only_with_jobs=False)
    assert opened.code == 0, opened.output[-5000:]
    lab.root(closed, begin)
    try:
        run = configure(LOGIN, "--limit", closed, plain=True, **variables)
        lab.insist(closed, "test -e /var/lib/slurmstead/login-trial/rejected", 120)

        assert run.code != 0
        assert "did not accept a new login with its new PAM files" in " ".join(run.output.split())
        assert lab.root(closed, MARKED) == "0"
    finally:
        lab.root(closed, end)
        assert configure(LOGIN).code == 0


def test_a_boot_during_the_trial_restores_the_files(lab: Any, closed: str, configure: Callable[..., Any]) -> None:
    begin, end, _ = FAULTS["nologin"]
    opened = configure(LOGIN, plain=True, login_only_with_jobs=False)
    assert opened.code == 0, opened.output[-5000:]
    lab.root(closed, begin)
    try:
        run = configure(LOGIN, "--limit", closed, plain=True, login_deadline=3600)
        tried = lab.root(closed, MARKED)
    finally:
        lab.root(closed, end)
    try:
        lab.cut_power(closed)
        lab.boot(closed)
        mount(lab, closed)

        assert (run.code != 0, tried) == (True, "2")
        assert lab.root(closed, MARKED) == "0"
        lab.wait_until_idle(180)
    finally:
        assert configure(LOGIN).code == 0
