"""A lab whose workers are closed to users without a job, until the last test has run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

OFF = {"login_only_with_jobs": False, "login_user_memory": "", "login_user_cpus": 0}
ON = {"login_only_with_jobs": True, "login_user_memory": "25%", "login_user_cpus": 2, "login_deadline": 45}

PATIENCE = 3600
"""Seconds for a run of Ansible on a computer that is busy."""

GROUPS = "/run/control-groups"
"""Where containers find control groups of version 1; the name of the directory in them is that of the lab."""

MOUNT = f"""
mkdir -p {GROUPS}/all {GROUPS}/freezer
mountpoint -q {GROUPS}/all || mount -t cgroup -o freezer freezer {GROUPS}/all
mkdir -p {GROUPS}/all/$0 && mountpoint -q {GROUPS}/freezer || mount --bind {GROUPS}/all/$0 {GROUPS}/freezer
"""
UNMOUNT = f"""
umount {GROUPS}/freezer
find {GROUPS}/all/$0 -depth -type d -exec rmdir {{}} +
umount {GROUPS}/all
"""

INSTALL = """
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends at cron >/dev/null
systemctl start atd cron
"""

Ssh = Callable[..., subprocess.CompletedProcess[str]]


def contained(lab: Any) -> dict[str, Any]:
    """The variables with which Slurm of a lab contains the processes of a job.

    In containers by the freezer of version 1 alone: it can be mounted again, whatever the computer itself uses.
    """
    if not lab.of_containers:
        return {}
    # It asks for the other controllers, too.
    health = dict.fromkeys(("HealthCheckInterval", "HealthCheckNodeState", "HealthCheckProgram"))
    return {
        "slurm_config": lab.slurm_config(ProctrackType="proctrack/cgroup", **health),
        "slurm_cgroup_config": {
            "CgroupPlugin": "cgroup/v1",
            "CgroupMountpoint": GROUPS,
            **dict.fromkeys(("ConstrainCores", "ConstrainRAMSpace", "ConstrainSwapSpace"), "no"),
        },
    }


def as_user(lab: Any, name: str, user: str, command: str) -> str:
    """Return the output of a command on a machine, also if it fails: a program of a user as Slurm or root starts it."""
    return str(lab.without_login(name, user, f"({command}) 2>&1 || true"))


def mount(lab: Any, name: str) -> None:
    """Mount the control groups that a container needs, after each of its boots."""
    if lab.of_containers:
        lab.host(name).check_output("sudo sh -euc %s %s", MOUNT, f"{lab.directory.name}-{name}")


@pytest.fixture(scope="session")
def configure(lab: Any) -> Callable[..., Any]:
    """Configure logins with other variables; `tags` are what else is configured."""

    def run(*arguments: str, tags: str = "os,login", plain: bool = False, **variables: Any) -> Any:
        given = json.dumps({**ON, **contained(lab), **variables})
        return lab.ansible("--tags", tags, "--extra-vars", given, *arguments, plain=plain, seconds=PATIENCE)

    return run


@pytest.fixture(scope="session")
def closed(lab: Any, configure: Callable[..., Any]) -> Iterator[str]:
    """A worker that is closed; it and control have cron and at."""
    worker, label = str(lab.workers[0]), lab.directory.name
    for name in (worker, lab.control):
        lab.root(name, INSTALL, seconds=300)
    lab.everywhere(lambda name: mount(lab, name))
    run = configure(tags="os,slurm,login")
    assert run.code == 0, run.output[-5000:]
    lab.wait_until_idle(120)
    yield worker
    off = lab.ansible("--tags", "os,slurm,login", "--extra-vars", json.dumps(OFF), seconds=PATIENCE)
    assert off.code == 0, off.output[-5000:]
    if lab.of_containers:
        lab.everywhere(lambda name: lab.host(name).check_output("sudo sh -euc %s %s", UNMOUNT, f"{label}-{name}"))
    for name in (worker, lab.control):
        lab.root(name, "DEBIAN_FRONTEND=noninteractive apt-get purge -qq at cron >/dev/null", seconds=300)


@pytest.fixture(scope="session")
def ssh(lab: Any) -> Ssh:
    """Log in over a new connection: machine, user, command."""

    def run(name: str, user: str, command: str = "true") -> subprocess.CompletedProcess[str]:
        config = lab.directory / name / "ssh_config"
        words = ["ssh", "-F", str(config), "-o", "ControlPath=none", "-o", f"User={user}", "-o", "BatchMode=yes"]
        return subprocess.run([*words, name, command], capture_output=True, text=True, timeout=60, check=False)

    return run
