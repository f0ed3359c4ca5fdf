"""`stead upgrade`: newer packages reach control first, then the workers, and no job notices.

The packages of Slurm and MUNGE are made newer for it, and are what they were in the end.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode

PROGRAM = (pathlib.Path(__file__).parent / "repository.py").read_text()
PACKAGES = (
    *("libmunge2", "munge", "slurm-client", "slurm-wlm-basic-plugins", "slurmctld", "slurmd"),
    *("slurm-wlm-mysql-plugin", "slurmdbd"),
)
SHARED, STORED = "/share/stead-upgrade", "/srv/share/stead-upgrade"
SETTINGS, SOURCE = "/etc/apt/apt.conf.d/99stead-test", "/etc/apt/stead-test.list"

# Nothing else is upgraded, and the lists of the mirror stay for other tests.
USE = f"""
echo 'deb [trusted=yes] file:{SHARED}/newer ./' > {SOURCE}
echo 'Dir::Etc::SourceList "{SOURCE}"; Dir::Etc::SourceParts "/dev/null"; APT::Get::List-Cleanup "false";' > {SETTINGS}
"""
FORGET = f"rm -f {SETTINGS} {SOURCE} /var/lib/apt/lists/*stead-upgrade*"
RESTORE = f"""
cd {SHARED}/orig
set -- $(dpkg-query --show --showformat='${{Package}} ${{Version}}\\n' {" ".join(PACKAGES)} 2> /dev/null | \
  sed -n 's/ .*+stead1$/_*.deb/p')
[ $# = 0 ] || DEBIAN_FRONTEND=noninteractive dpkg --install --force-confold "$@"
systemctl try-restart munge
systemctl try-restart slurmdbd 2> /dev/null
systemctl try-restart slurmctld 2> /dev/null
systemctl try-restart slurmd 2> /dev/null
true
"""


@pytest.fixture(scope="module")
def versions(lab: Any) -> Iterator[dict[str, str]]:
    """The versions of the packages as they are; in the end they are that again."""
    lab.wait_until_idle(180)
    lab.root(lab.server, f"rm -rf {STORED}")
    yield lab.python(lab.server, PROGRAM, STORED, *PACKAGES)
    lab.everywhere(lambda name: lab.root(name, f"{FORGET}; {RESTORE}", seconds=500))
    lab.root(lab.server, f"rm -rf {STORED}")
    lab.wait_until_idle(240)


@pytest.fixture
def offer(lab: Any, versions: dict[str, str]) -> Iterator[Callable[..., None]]:
    """Let apt on all machines find the newer packages, and no others."""

    def use() -> None:
        lab.everywhere(lambda name: lab.root(name, USE))

    yield use
    lab.everywhere(lambda name: lab.root(name, FORGET))


@pytest.fixture
def installed(lab: Any) -> Callable[[], dict[str, set[str]]]:
    """Return the versions of the packages that each machine has."""
    command = f"dpkg-query --show --showformat='${{Version}} ' {' '.join(PACKAGES)} 2> /dev/null || true"
    return lambda: lab.everywhere(lambda name: set(lab.root(name, command).split()))


@pytest.fixture
def shown(lab: Any) -> Callable[[list[str], str], list[str]]:
    """Return a field of each of some jobs, as slurmctld has it."""

    def field(numbers: list[str], name: str) -> list[str]:
        lines = lab.root(lab.control, "scontrol --oneliner show job").splitlines()
        jobs = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
        return [job.get(name, "") for number in numbers for job in jobs if job.get("JobId") == number]

    return field


def test_jobs_do_not_notice_an_upgrade_and_another_one_changes_nothing(
    lab: Any, stead: Any, submit: Any, offer: Any, installed: Any, shown: Any, ended_once: Any, versions: dict[str, str]
) -> None:
    running = [submit(name, 330, "--exclusive") for name in lab.workers]
    one = "sbatch --parsable --no-requeue --mem=50 --output=/dev/null --wrap='echo ended >> ended-$SLURM_JOB_ID'"
    pending = lab.user(f"for i in $(seq 20); do {one}; done", seconds=240).split()
    assert shown(running + pending, "JobState") == ["RUNNING"] * 3 + ["PENDING"] * 20
    starts, pids = shown(running, "StartTime"), lab.pids()
    offer()

    done = stead("upgrade", "--at-once", "2", seconds=900)

    assert done.returncode == ExitCode.OK
    assert "It contains the MUNGE key" in done.stdout
    newer = {f"{version}+stead1" for version in versions.values()}
    assert all(found <= newer for found in installed().values())
    upgraded = lab.pids()
    assert not {(name, daemon) for name in lab.names for daemon in ("munge", "slurmctld", "slurmd")} & {
        (name, daemon) for name in lab.names for daemon, pid in pids[name].items() if pid == upgraded[name][daemon]
    }
    assert shown(running, "StartTime") == starts
    assert set(shown(running, "JobState")) <= {"RUNNING", "COMPLETED"}
    assert set(shown(running + pending, "Restarts")) == {"0"}
    following = submit(lab.workers[0], 0, wait=False)
    assert int(following) == int(pending[-1]) + 1

    again = stead("upgrade")

    assert again.returncode == ExitCode.OK
    assert "changed: nothing" in again.stdout
    assert lab.pids() == upgraded
    lab.wait_until_idle(500)
    assert [job for job in [*running, *pending, following] if not ended_once(job)] == []
