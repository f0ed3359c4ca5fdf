"""A worker's health check beside real daemons: what Slurm drained is taken back, an administrator's drain never is."""

from __future__ import annotations

import pathlib
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.native.cluster import Cluster

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "roles/slurmd/files/health_check.py"
CHECK = ("env", "-i", "SLURMD_NODENAME=node1")
HOOK = "/tmp/hook"
OURS = "slurmstead: disk / is full, 0 MiB left"

BEFORE_SCONTROL = """\
case "$*" in *RESUME*|--oneliner)
    /usr/bin/scontrol update NodeName=node1 State=DRAIN Reason=fan ;;
esac
exec /usr/bin/scontrol "$@"
"""
"""A scontrol before which an administrator drains the node, once the check has decided to resume it."""

BEFORE_RESUMED = BEFORE_SCONTROL.replace("DRAIN Reason=fan", "RESUME")
"""A scontrol before which another check, or an administrator, resumes the node."""

AT_THE_RESUME = """\
[ "$*" = --oneliner ] || exec /usr/bin/scontrol "$@"
while read -r line; do
    case $line in *RESUME*) /usr/bin/scontrol update NodeName=node1 State=DRAIN Reason=fan ;; esac
    echo "$line" | /usr/bin/scontrol --oneliner
done
"""
"""A scontrol in which an administrator drains the node after it has shown the node, right before it resumes it."""


@pytest.fixture(scope="module")
def one(release: str) -> Iterator[Cluster]:
    """A cluster of one node with the health check; a test leaves it idle."""
    with Cluster(release, 1, {"Prolog": HOOK}) as cluster:
        text = PROGRAM.read_text()
        # The node declares more CPUs than this computer may have.
        online = 'CPUS = "/sys/devices/system/cpu/online"'
        assert text.count(online) == 1
        cluster.run("tee", "/tmp/health-check", text=text.replace(online, 'CPUS = "/tmp/online"'), on="node1")
        cluster.run("tee", "/tmp/online", text="0-3\n", on="node1")
        cluster.run("chmod", "755", "/tmp/health-check", on="node1")
        script(cluster, HOOK, "exit 0")
        yield cluster


def script(cluster: Cluster, path: str, text: str) -> None:
    """Put a shell script on the node."""
    cluster.run("sh", "-c", f"mkdir -p $(dirname {path}) && touch {path} && chmod 755 {path}", on="node1")
    cluster.run("tee", path, text=f"#!/bin/sh\n{text}\n", on="node1")


def check(cluster: Cluster, path: str = "/usr/bin") -> str:
    """Run the check as slurmd does; returns what it prints."""
    return cluster.run(*CHECK, f"PATH={path}:/usr/sbin:/usr/bin:/sbin:/bin", "/tmp/health-check", on="node1")


def drain(cluster: Cluster, reason: str) -> None:
    cluster.run("scontrol", "update", "NodeName=node1", "State=DRAIN", f"Reason={reason}")


def said(cluster: Cluster) -> tuple[str, str]:
    """Return state and reason of the node."""
    state, _, reason = cluster.run("sinfo", "--noheader", "--Node", "--format=%T %E").partition(" ")
    # A node that was resumed does not answer until it has registered.
    return state.rstrip("*"), reason.strip()


def give_back(cluster: Cluster) -> None:
    cluster.run("scontrol", "update", "NodeName=node1", "State=RESUME")
    cluster.wait_until_idle()


def test_a_drain_of_its_own_is_resumed(one: Cluster) -> None:
    drain(one, OURS)

    assert check(one) == "resumed node1, which was drained for: disk / is full, 0 MiB left"
    one.wait_until_idle()


def requests(cluster: Cluster) -> Counter[str]:
    """Return how often slurmctld was asked for information by others than sdiag, by kind."""
    counted = cluster.run("sdiag").partition("by message type")[2].partition("by user")[0]
    return Counter(
        {kind: int(number) for kind, number in re.findall(r"(REQUEST_(?!STATS)\w+_INFO\w*) .*count:(\d+)", counted)}
    )


def test_a_check_costs_slurmctld_what_the_page_about_scale_says(one: Cluster) -> None:
    of_the_node = Counter({"REQUEST_PARTITION_INFO": 1, "REQUEST_NODE_INFO_SINGLE": 1})
    of_a_job = Counter({"REQUEST_PARTITION_INFO": 1, "REQUEST_JOB_INFO_SINGLE": 1, "REQUEST_FED_INFO": 1})
    before = requests(one)
    assert check(one) == ""
    assert requests(one) - before == of_the_node

    number = one.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600", user="alice")
    one.wait_for(lambda: one.tried("pgrep", "-u", "alice", "sleep", on="node1").stdout, 60, "the job runs")
    before = requests(one)
    assert check(one) == ""
    assert requests(one) - before == of_the_node + of_a_job

    one.run("scancel", number)
    one.wait_until_idle()


def test_no_text_of_a_job_changes_what_is_known_of_another(one: Cluster) -> None:
    job = ("--parsable", "--mem=100", "--output=/dev/null", "--wrap=sleep 600")
    number = one.run("sbatch", "--job-name=two\nlines", *job, user="alice")
    one.wait_for(lambda: one.tried("pgrep", "-u", "alice", "sleep", on="node1").stdout, 60, "the job runs")
    fake = f"/tmp/x\nJobId={number} JobState=COMPLETED"
    one.run("mkdir", "-p", fake, on="node1")
    other = one.run("sbatch", f"--chdir={fake}", *job, user="bob")
    one.wait_for(lambda: one.tried("pgrep", "-u", "bob", "sleep", on="node1").stdout, 60, "the other job runs")

    assert check(one) == ""

    one.run("scancel", number, other)
    one.wait_until_idle()


def test_a_task_of_an_array_is_known_by_its_own_number(one: Cluster) -> None:
    job = ("--parsable", "--array=1-2", "--mem=100", "--output=/dev/null", "--wrap=sleep 600")
    number = one.run("sbatch", *job, user="alice")
    one.wait_for(lambda: one.tried("pgrep", "sleep", "-u", "alice", on="node1").stdout.count("\n") > 1, 60, "both run")

    assert check(one) == ""

    one.run("scancel", number)
    one.wait_until_idle()


def test_a_failed_kill_is_taken_back_at_the_second_check(one: Cluster) -> None:
    # As slurmstepd does it: stepd_drain_node.
    one.run("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=Kill task failed", on="node1")

    assert check(one) == ""
    assert said(one) == ("drained", "Kill task failed")
    assert "resumed node1" in check(one)
    one.wait_until_idle()


def test_a_node_whose_prolog_failed_is_taken_back_once_it_succeeds_again(one: Cluster) -> None:
    script(one, HOOK, "echo no licence; exit 1")
    one.tried("srun", "true", user="alice")
    one.wait_until("drained", ["node1"])
    assert said(one)[1] == "Prolog error"

    assert check(one) == "node1 stays drained (Prolog error): Prolog: no licence"
    assert check(one) == ""
    script(one, HOOK, "exit 0")
    assert check(one) == ""
    assert "resumed node1" in check(one)
    one.wait_until_idle()
    assert one.run("srun", "hostname", user="alice") == "node1"


def test_a_step_that_slurmctld_has_lost_keeps_the_node_drained_and_is_ended(one: Cluster) -> None:
    job = ("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600")
    number = one.run(*job, user="alice")
    one.wait_for(lambda: one.tried("pgrep", "-x", "sleep", on="node1").stdout.count("\n") > 1, 60, "the job runs")
    pid = one.run("pgrep", "-f", rf"slurmstepd: .{number}\.", on="node1")
    assert check(one) == ""
    # It hears no signal of slurmd, and slurmctld forgets the job.
    one.run("kill", "-STOP", *pid.split(), on="node1")
    one.stop("control")
    one.run("sh", "-c", "rm -f /var/lib/slurm/slurmctld/job_state*")
    one.start("control")
    one.wait_for(lambda: set(one.states().values()) == {"idle"}, 60, "the node is back")
    drain(one, "Kill task failed")

    first = check(one)
    assert f"processes of job {number}, which slurmctld no longer has on this node" in first
    assert f"node1 stays drained (Kill task failed): processes of job {number} are left" in first
    assert check(one) == ""
    # Later than LOST_SECONDS.
    one.run("sed", "-i", rf's/"{number}": [0-9.]*/"{number}": -1000/', "/run/slurmstead-health.json", on="node1")
    assert f"of job {number}" in check(one)
    one.wait_for(
        lambda: one.tried("pgrep", "-f", "[s]lurmstepd|[s]leep 600", on="node1").returncode, 10, "all is ended"
    )
    assert check(one) == ""
    assert "resumed node1" in check(one)
    one.wait_until_idle()


def test_a_drain_between_question_and_resume_stays(one: Cluster) -> None:
    drain(one, OURS)
    script(one, "/tmp/late/scontrol", BEFORE_SCONTROL)

    assert "node1 stays as root drained it meanwhile: fan" in check(one, "/tmp/late")

    assert said(one) == ("drained", "fan")
    assert [check(one), check(one), said(one)] == ["", "", ("drained", "fan")]
    give_back(one)


def test_a_node_that_another_check_has_just_resumed_is_no_failure(one: Cluster) -> None:
    drain(one, OURS)
    script(one, "/tmp/late/scontrol", BEFORE_RESUMED)

    assert check(one, "/tmp/late") == "node1 was resumed meanwhile"

    one.wait_until_idle()


def test_a_drain_at_the_very_resume_stays_where_slurm_shows_what_it_removed(one: Cluster) -> None:
    drain(one, OURS)
    script(one, "/tmp/late/scontrol", AT_THE_RESUME)

    seen = check(one, "/tmp/late")

    if one.release == "bookworm":
        # The limit: 22.05 clears the reason as it resumes, so a drain in the milliseconds before leaves no trace.
        assert "resumed node1" in seen
    else:
        assert "node1 stays as root drained it meanwhile: fan" in seen
        assert said(one) == ("drained", "fan")
        give_back(one)
    one.wait_until_idle()
