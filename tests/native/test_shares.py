"""Shares and limits with a real slurmdbd: written once, kept, and enforced. For many: test_many.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible.module_utils.slurmstead.accounting.wanted import Declared, slurm_config
from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.cluster import Cluster
from tests.native.gate import program as gate_program

MODULE = """
import json, sys
from ansible.module_utils.slurmstead.accounting import difference, storage
from ansible.module_utils.slurmstead.accounting.wanted import Declared, wanted

def plan():
    answers = {}
    for about, command in difference.questions("native").items():
        code, answers[about], err = storage.asked("control", *command, cluster="native", seconds=100)
        assert not code, err
    found = difference.read(answers)
    given = json.loads(GIVEN)
    gone = difference.removals("native", given.pop("remove", []), given.pop("remove_accounts", []), found)
    return [*difference.changes("native", wanted(Declared(**given), ["bob"]), found), *gone]

changes = plan()
out = err = ""
for batch in difference.batches(changes):
    text = "".join(change.command + "\\n" for change in batch)
    code, *said = storage.asked("control", "sacctmgr", "--immediate", cluster="native", seconds=500, text=text)
    out, err = out + said[0], err + said[1]
print(json.dumps({"lines": [change.line for change in changes], "left": [change.line for change in plan()],
    "said": out[-2000:] + err}))
"""
COURSE: dict[str, Any] = {
    "template": "course",
    "low": "requeue",
    "people": [{"name": "alice", "account": "Course"}],
    "qos": {
        "course": {"MaxJobsPerUser": 2, "MaxSubmitJobsPerUser": 6, "MaxTRESPerUser": {"cpu": 3}},
        # Else the limits of students are those of all in `low`.
        "low": {"MaxTRESPerUser": None},
    },
}


def keep(cluster: Cluster, **given: Any) -> list[str]:
    """Set shares as the module does; return what was changed. What is left to do fails the test."""
    text = f"GIVEN = {json.dumps(given)!r}\n{MODULE}"
    program = remote_call.PROGRAM.partition("called =")[0].format(
        sources=remote_call.sources(remote_call.imports("", text))
    )
    done = json.loads(cluster.run("python3", "-", text=program + text, seconds=600))
    assert done["left"] == [], done
    lines: list[str] = done["lines"]
    return lines


@pytest.fixture(scope="module")
def course(release: str) -> Iterator[Cluster]:
    """A cluster with a course whose student is alice; bob only can log in. A test cancels its own jobs only."""
    with Cluster(release, 2, database=True) as cluster:
        # Job 1 is submitted before there are shares.
        cluster.run("sbatch", "--hold", "--output=/dev/null", "--mem=10", "--wrap=true", user="bob")
        assert keep(cluster, **COURSE) != []
        keys = {name: str(value) for name, value in slurm_config(Declared(**COURSE)).items()}
        said = gate_program.run(cluster, "publish", json.dumps(keys))
        assert "ASSOCIATIONS,LIMITS,QOS,SAFE" in cluster.run("scontrol", "show", "config").upper(), said
        yield cluster


def test_a_job_from_before_the_limits_still_runs(course: Cluster) -> None:
    course.run("scontrol", "release", "1")

    course.wait_for(
        lambda: "COMPLETED" in course.run("sacct", "-nXP", "-j", "1", "--format=State"), 60, "the job from before"
    )
    assert course.run("sacct", "-nXP", "-j", "1", "--format=User") == "bob"


def test_a_second_time_nothing_changes(course: Cluster) -> None:
    assert keep(course, **COURSE) == []


def test_who_can_log_in_can_submit(course: Cluster) -> None:
    shown = [course.run("sbatch", "--test-only", "--wrap=true", user=user) for user in ("alice", "bob", "root")]

    assert shown == ["", "", ""]


def test_a_student_is_limited_and_others_are_not(course: Cluster) -> None:
    def running(user: str) -> int:
        return len(course.run("squeue", "-h", "-t", "R", "-u", user).splitlines())

    def submit(user: str, jobs: int) -> int:
        """Submit eight, and wait until so many run; return how many were accepted."""
        job = ("sbatch", "--job-name=limit", "--output=/dev/null", "--mem=10", "--wrap=sleep 600")
        accepted = sum(course.tried(*job, user=user).returncode == 0 for _ in range(8))
        course.wait_for(lambda: running(user) >= jobs, 60, f"{jobs} jobs of {user} run")
        return accepted

    # Alice first, because bob's jobs could take all CPUs.
    taken = {user: submit(user, jobs) for user, jobs in (("alice", 2), ("bob", 4))}
    limited = running("alice")
    course.run("scancel", "--name=limit")
    course.wait_until_idle()

    assert taken == {"alice": 6, "bob": 8}
    assert limited == 2


def test_a_name_with_capitals_stays_as_it_is(course: Cluster) -> None:
    people = [*COURSE["people"], {"name": "Ann", "account": "Course"}]

    assert keep(course, **{**COURSE, "people": people}) == ["+ user Ann in account course"]
    assert keep(course, **{**COURSE, "people": people, "users": {"Ann": {"MaxJobs": 2}}}) != []
    assert keep(course, **{**COURSE, "remove": ["Ann"]}) == ["- user Ann"]


def test_a_student_cannot_use_an_account_from_before_the_course(course: Cluster) -> None:
    job = ("sbatch", "--parsable", "--output=/dev/null", "--mem=10", "--wrap=true")
    before = course.run(*job, "--hold", user="bob")
    people = [*COURSE["people"], {"name": "bob", "account": "course"}]

    lines = keep(course, **{**COURSE, "people": people})
    assert lines[1] == "~ user bob in account staff GrpSubmitJobs=0"
    refused = course.tried(*job, "--account=staff", user="bob")
    assert "AssocGrpSubmitJobsLimit" in refused.stderr
    course.run("scontrol", "release", before)
    course.wait_for(lambda: "COMPLETED" in course.run("sacct", "-nXP", "-j", before, "-oState"), 60, "the earlier job")

    keep(course, **COURSE)
    course.run("scancel", course.run(*job, "--hold", user="bob"))


@pytest.mark.slow
def test_students_have_the_limits_of_low_beside_their_own(course: Cluster) -> None:
    job = ("sbatch", "--hold", "--output=/dev/null", "--mem=10", "--wrap=true")
    taken = {
        qos: sum(course.tried(*job, f"--qos={qos}", user="alice").returncode == 0 for _ in range(8))
        for qos in ("course", "low", "normal")
    }
    course.run("scancel", "--user=alice")

    assert taken == {"course": 6, "low": 6, "normal": 0}


@pytest.mark.slow
def test_low_has_no_effect_without_a_way_to_give_way(release: str) -> None:
    given = {"people": [{"name": "alice", "account": "bio"}], "low": "none"}
    # After a reconfiguration, --test-only fails until the nodes are there.
    job = ("sbatch", "--hold", "--output=/dev/null", "--qos=low", "--wrap=true")
    with Cluster(release, 1, database=True) as cluster:
        accepted = {}
        for template in ("lab", "course"):
            keep(cluster, template=template, **given)
            keys = {name: str(value) for name, value in slurm_config(Declared(template, **given)).items()}
            gate_program.run(cluster, "publish", json.dumps(keys))
            assert "ASSOCIATIONS,LIMITS" in cluster.run("scontrol", "show", "config").upper()
            accepted[template] = [cluster.tried(*job, user=user).returncode == 0 for user in ("alice", "bob")]

        # Students could exceed their limits with it.
        assert accepted == {"lab": [True, True], "course": [False, True]}


@pytest.mark.slow
def test_a_job_of_low_gives_way_and_runs_again(course: Cluster) -> None:
    words = ("sbatch", "--parsable", "--output=/dev/null", "--mem=10", "--exclusive")
    low = course.run(*words, "--qos=low", "-N2", "--requeue", "--wrap=sleep 3", user="bob")
    course.wait_for(lambda: course.run("squeue", "-h", "-t", "R", "-j", low), 30, "the low job runs")

    high = course.run(*words, "-N2", "--wrap=sleep 1", user="bob")
    course.wait_for(lambda: course.run("squeue", "-h", "-t", "R,CG", "-j", high), 30, "the other job runs")

    both = ("-t", "PD,R,CG", "-j", f"{low},{high}")
    course.wait_for(lambda: not course.run("squeue", "-h", *both), 240, "both jobs end")
    states = course.run("sacct", "-nXP", "-D", "-j", low, "--format=State").splitlines()
    assert states[-1] == "COMPLETED" and len(states) == 2, states


@pytest.mark.slow
def test_what_is_not_declared_stays_and_removal_must_be_told(course: Cluster) -> None:
    course.run("sacctmgr", "-i", "add", "account", "guests")
    course.run("sacctmgr", "-i", "modify", "user", "alice", "set", "MaxJobs=1")
    assert keep(course, **COURSE) == []

    lines = keep(course, **{**COURSE, "people": [], "users": {"bob": {"MaxWall": "1:00:00"}}})

    assert lines == ["~ user bob in account staff MaxWall=1:00:00"]
    shown = course.run("sacctmgr", "-nP", "show", "assoc", "format=Account,User,MaxJobs,MaxWall", "wopinfo")
    assert {"guests|||", "course|alice|1|"} <= set(shown.splitlines())
    assert keep(course, **{**COURSE, "people": [], "remove": ["alice"]}) == ["- user alice"]
    assert keep(course, **COURSE) == ["+ user alice in account course"]


@pytest.mark.slow
def test_limits_are_changed_and_cleared(course: Cluster) -> None:
    limits = {"GrpTRES": {"cpu": 8, "mem": "4G"}, "MaxJobs": 5, "MaxWall": "2:00:00", "Parent": "school"}
    keep(course, **{**COURSE, "accounts": {"course": limits}})
    other = {"GrpTRES": {"cpu": 6}, "MaxJobs": None, "MaxWall": None, "Parent": "school"}
    assert len(keep(course, **{**COURSE, "accounts": {"course": other}})) == 1

    shown = course.run("sacctmgr", "-nP", "show", "assoc", "account=course", "format=User,GrpTRES,MaxJobs,MaxWall")
    assert "|cpu=6||" in shown.splitlines()
    keep(course, **{**COURSE, "accounts": {"course": {"GrpTRES": None}}})


@pytest.mark.slow
def test_accounts_go_with_those_below_them(course: Cluster) -> None:
    keep(course, **{**COURSE, "accounts": {"above": {}, "below": {"Parent": "above"}}})

    lines = keep(course, **{**COURSE, "remove_accounts": ["above", "below"]})

    assert lines == ["- account below", "- account above"]
    assert "above" not in course.run("sacctmgr", "-nP", "show", "assoc", "format=Account")


@pytest.mark.slow
def test_null_is_what_slurm_has_without_a_value(course: Cluster) -> None:
    qos = {"GraceTime": 120, "PreemptMode": "cancel", "Priority": 5, "UsageFactor": 0.5, "Preempt": None}
    user = {"DefaultQOS": "normal", "Fairshare": 3, "QOS": ["normal"]}
    gpu, bob = {**COURSE["qos"], "gpu": qos}, {"bob": user}
    keep(course, **{**COURSE, "qos": gpu, "users": bob})

    cleared = {"qos": {**gpu, "gpu": dict.fromkeys(qos)}, "users": {"bob": dict.fromkeys(user)}}
    assert len(keep(course, **{**COURSE, **cleared})) == 2

    shown = course.run("sacctmgr", "-nP", "show", "qos", "gpu", "format=GraceTime,PreemptMode,Priority,UsageFactor")
    assert shown == "00:00:00|cluster|0|1.000000"
