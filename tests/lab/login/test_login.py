"""Workers that are closed to users without a job: ways in that are closed, and no way to lock an administrator out.

STEAD_LAB=NAME pytest tests/lab/login
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

ON = {"login_only_with_jobs": True, "login_user_memory": "25%", "login_user_cpus": 2, "login_deadline": 45}
PAM = "cd /etc/pam.d && sha256sum sshd su cron atd systemd-user 2>&-; ls /etc/slurmstead /etc/pam.d"
MARKED = "cat /etc/pam.d/sshd | grep --count 'BEGIN slurmstead' || true"
AS_ALICE = "setpriv --reuid=alice --regid=alice --init-groups --reset-env"


def configure(lab: Any, *arguments: str, plain: bool = False, **variables: Any) -> Any:
    """Configure logins with other variables."""
    given = json.dumps({**ON, **lab.of_containers.get("extra", {}), **variables})
    return lab.ansible("--tags", "os,login", "--extra-vars", given, *arguments, plain=plain)


def ssh(lab: Any, name: str, user: str, command: str = "true") -> subprocess.CompletedProcess[str]:
    """Log in over a new connection."""
    config = lab.directory / name / "ssh_config"
    words = ["ssh", "-F", str(config), "-o", "ControlPath=none", "-o", f"User={user}", "-o", "BatchMode=yes"]
    return subprocess.run([*words, name, command], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def before(lab: Any) -> str:
    """PAM's files of a worker before."""
    return str(lab.root(lab.workers[0], PAM))


@pytest.fixture(scope="module")
def closed(lab: Any, before: str) -> Iterator[str]:
    """A worker that is closed."""
    assert before
    run = configure(lab)
    assert run.code == 0, run.output[-5000:]
    yield lab.workers[0]
    off = configure(lab, login_only_with_jobs=False, login_user_memory="", login_user_cpus=0)
    assert off.code == 0, off.output[-5000:]


def test_a_second_run_changes_nothing(lab: Any, closed: str) -> None:
    run = configure(lab)

    assert closed and run.code == 0, run.output[-5000:]
    assert run.changed == {}


def test_ssh_without_a_job_is_refused_on_a_worker_only(lab: Any, closed: str) -> None:
    refused, control = ssh(lab, closed, "alice"), ssh(lab, lab.control, "alice")

    assert refused.returncode == 255
    assert control.returncode == 0, control.stderr


def test_an_administrator_logs_in(lab: Any, closed: str) -> None:
    done = ssh(lab, closed, "debian", "sudo --non-interactive id --user")

    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


def test_su_is_refused_to_users_and_not_to_root(lab: Any, closed: str) -> None:
    said = lab.root(closed, f"{AS_ALICE} su --command=id root </dev/null 2>&1 || echo refused")

    assert said.splitlines()[-1] == "refused"
    assert lab.root(closed, "su --command='id --user --name' alice") == "alice"


def test_systemd_does_not_start_a_users_manager(lab: Any, closed: str) -> None:
    said = lab.root(closed, "loginctl enable-linger alice; systemctl start user@2001.service 2>&1 || echo refused")
    lab.root(closed, "loginctl disable-linger alice; systemctl reset-failed")

    assert said.splitlines()[-1] == "refused"


def test_users_on_control_are_limited_and_root_is_not(lab: Any, closed: str) -> None:
    show = "systemctl show --property=MemoryMax,CPUQuotaPerSecUSec"
    assert closed

    assert "CPUQuotaPerSecUSec=2s" in lab.root(lab.control, f"{show} user-2001.slice")
    assert "MemoryMax=infinity" not in lab.root(lab.control, f"{show} user-2001.slice")
    assert "MemoryMax=infinity" in lab.root(lab.control, f"{show} user-0.slice")


def test_files_with_which_ansible_could_not_log_in_are_restored(lab: Any, closed: str) -> None:
    """/etc/nologin refuses new logins while the connection of an earlier run goes on."""
    opened = configure(lab, plain=True, login_only_with_jobs=False)
    assert opened.code == 0, opened.output[-5000:]
    lab.root(closed, "echo no > /etc/nologin")
    try:
        run = configure(lab, "--limit", closed, plain=True)
        lab.insist(closed, "test -e /var/lib/slurmstead/login-trial/rejected", 120)

        assert run.code != 0
        assert "did not accept a new login with its new PAM files" in " ".join(run.output.split())
        assert lab.root(closed, MARKED) == "0"
    finally:
        lab.root(closed, "rm --force /etc/nologin")
        assert configure(lab).code == 0


@pytest.mark.kernel
def test_ssh_with_a_job_is_adopted_and_ends_with_the_job(lab: Any, closed: str) -> None:
    number = lab.user(f"sbatch --parsable --nodelist={closed} --output=/dev/null --wrap='sleep 600'")
    try:
        lab.insist(lab.control, f"squeue --noheader --job={number} --format=%T | grep RUNNING", 120)
        done = ssh(lab, closed, "alice", "cat /proc/self/cgroup; setsid sleep 600 >&- 2>&- <&- &")
        assert done.returncode == 0, done.stderr
        assert f"job_{number}" in done.stdout
    finally:
        lab.user(f"scancel {number}")
    lab.insist(closed, "! pgrep --euid alice", 120)
