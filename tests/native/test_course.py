"""A course of 215 students on twelve machines: no job is lost, limits are kept, and groups get their shares."""

from __future__ import annotations

import collections
import time

import pytest

from ansible.module_utils.slurmstead.accounting.wanted import Declared, slurm_config
from tests.native.cluster import CONTROL, Cluster
from tests.native.test_shares import keep

SHARES = {"early": 3, "late": 1}
"""Two groups, and their shares of the cluster."""

STUDENTS = {
    f"{group}{number:03}": group for number in range(108) for group in SHARES if (group, number) != ("late", 107)
}
JOBS, SECONDS, AT_ONCE = 10, 20, 2
"""The jobs of a student, how long each runs, and how many of them at a time."""

MINUTES = 10
"""After this time each group has got its share."""

SUBMIT = f"""
cd /tmp
for job in $(seq {JOBS}); do
    setpriv --reuid="$1" --regid="$1" --clear-groups \\
        sbatch --parsable --output=/dev/null --mem=10 --wrap='sleep {SECONDS}' || exit
done
"""
COURSE = {
    "template": "course",
    "people": [{"name": name, "account": group} for name, group in STUDENTS.items()],
    "accounts": {group: {"Fairshare": share} for group, share in SHARES.items()},
    "qos": {"course": {"MaxJobsPerUser": AT_ONCE, "MaxSubmitJobsPerUser": JOBS}},
}


def most_running(cluster: Cluster) -> int:
    """Return the most jobs that one student has running now."""
    users = cluster.run("squeue", "--noheader", "--states=RUNNING", "--format=%u").split()
    return max(collections.Counter(users).values(), default=0)


def shares(cluster: Cluster) -> dict[str, float]:
    """Return the part of the time of all jobs that each group has got."""
    shown = cluster.run("sacct", "-a", "-nXP", "--format=Account,ElapsedRaw", "--starttime=now-1hours", seconds=120)
    spent: dict[str, int] = collections.Counter()
    for account, seconds in (line.split("|") for line in shown.splitlines()):
        spent[account] += int(seconds)
    return {group: spent[group] / max(1, sum(spent.values())) for group in SHARES}


@pytest.mark.slow
def test_a_course_loses_no_job_keeps_limits_and_shares_as_declared(release: str) -> None:
    users = {name: number for number, name in enumerate(STUDENTS, 10_001)}
    with Cluster(release, 12, database=True, users=users) as cluster:
        keep(cluster, **COURSE)
        cluster.configure(**{key: str(value) for key, value in slurm_config(Declared(**COURSE)).items()})
        cluster.restart(CONTROL)

        started = time.monotonic()
        submitted = cluster.run(
            *("xargs", "-P4", "-n1", "sh", "-c", SUBMIT, "sh"), text="\n".join(STUDENTS), seconds=300
        ).split()
        took = time.monotonic() - started
        # At most those of its ten that have begun are over.
        refused = cluster.tried("sh", "-c", SUBMIT, "sh", "late000")

        most, time_up = 0, time.monotonic() + MINUTES * 60
        while time.monotonic() < time_up:
            most = max(most, most_running(cluster))
            time.sleep(5)
        waiting = set(cluster.run("squeue", "--noheader", "--states=PENDING", "--format=%a").split())
        got = shares(cluster)
        cluster.wait_for(lambda: not cluster.run("squeue", "-h"), 900, "all jobs end")
        shown = cluster.run("sacct", "-a", "-nXP", "--format=JobID,State", "--starttime=now-1hours", seconds=120)

    print(f"{release}: {len(submitted)} jobs submitted in {took:.0f} s, shares {got}, at most {most} at once")
    ended = dict(line.split("|") for line in shown.splitlines())
    assert took < 60
    assert len(submitted) == len(STUDENTS) * JOBS
    assert {ended.get(job, "lost") for job in submitted} == {"COMPLETED"}
    assert "QOSMaxSubmitJobPerUserLimit" in refused.stderr
    assert most == AT_ONCE
    assert waiting >= {"late"}
    assert got["early"] == pytest.approx(0.75, rel=0.1)
