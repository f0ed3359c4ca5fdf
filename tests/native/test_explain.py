"""`stead doctor --job`: what real daemons say about jobs that wait for different reasons, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.cluster import Cluster

JOB = ("sbatch", "--parsable", "--output=/dev/null")


@pytest.fixture(scope="module")
def two(release: str) -> Iterator[Cluster]:
    """A cluster of two nodes of 4 CPUs and 1000 MiB; node1 is busy with a job of alice."""
    with Cluster(release, 2) as cluster:
        submit(cluster, "alice", "--nodelist=node1", "--ntasks=4", "--mem=900", "--time=10", "--wrap=sleep 3600")
        cluster.wait_until("allocated", ["node1"])
        yield cluster


def submit(cluster: Cluster, user: str, *options: str) -> str:
    """Submit a job; return its number."""
    return cluster.run(*JOB, *options, *([] if options[-1].startswith("--wrap") else ["--wrap=true"]), user=user)


def explain(cluster: Cluster, number: str) -> tuple[list[str], bool]:
    """Return what is said about a job, and whether it is hopeless."""
    done = cluster.run("python3", "-IS", "-", text=remote_call.program("doctor.job", "look", {"number": number}))
    told = json.loads(done.splitlines()[-1])
    return told["lines"], told["hopeless"]


def waits(cluster: Cluster, user: str, *options: str, reason: str) -> str:
    """Submit a job, and wait until slurmctld says why it waits."""
    number = submit(cluster, user, *options)
    shown = ("squeue", "--noheader", f"--jobs={number}", "--format=%r")
    cluster.wait_for(lambda: reason in cluster.run(*shown), 60, f"job {number}: {reason}")
    return number


def cancel(cluster: Cluster, *numbers: str) -> None:
    cluster.run("scancel", *numbers)


def test_a_job_that_waits_for_a_busy_node_is_told_when_it_has_room(two: Cluster) -> None:
    first = waits(two, "bob", "--nodelist=node1", "--ntasks=2", "--mem=500", "--time=5", reason="Resources")
    # Its reason becomes another one within a second.
    second = submit(two, "bob", "--nodelist=node1", "--ntasks=2", "--mem=500", "--time=5")

    lines, hopeless = explain(two, first)
    behind, _ = explain(two, second)
    cancel(two, first, second)

    asks = "asks for 2 CPUs on at least 1 node, 500 MiB per node, the nodes node1, the time 00:05:00"
    assert asks in lines[0]
    assert "in the partition main" in lines[0]
    assert "Busy: node1 (0 of 4 CPUs and 100 of 1000 MiB are free)" in lines
    assert any(line.startswith("node1 gets room when job 1 of alice ends, by 20") for line in lines)
    assert not hopeless
    assert f"Ahead of it: job {first} of bob." in behind


def test_a_drained_node_is_named_with_its_reason(two: Cluster) -> None:
    two.run("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=fan")
    number = waits(two, "bob", "--ntasks=2", "--mem=500", "--exclude=node1", reason="")

    lines, hopeless = explain(two, number)
    cancel(two, number)
    two.run("scontrol", "update", "NodeName=node2", "State=RESUME")
    two.wait_until("idle", ["node2"])

    assert "Out of service: node2 (idle+drain: fan)" in lines
    assert not hopeless


@pytest.mark.parametrize(
    ("options", "reason", "line"),
    [
        (["--hold"], "JobHeldUser", "It is held by its user. To let it start: `scontrol release {}`."),
        (["--dependency=afterok:1"], "Dependency", "It waits for other jobs: afterok:1(unfulfilled)."),
        (["--begin=now+2hours"], "BeginTime", "It may not start before 20"),
    ],
)
def test_what_a_job_waits_for_is_said(two: Cluster, options: list[str], reason: str, line: str) -> None:
    number = waits(two, "bob", *options, "--mem=100", reason=reason)

    lines, hopeless = explain(two, number)
    cancel(two, number)

    assert any(said.startswith(line.format(number)) for said in lines), lines
    assert any(said.startswith("Could run it now: node2") for said in lines), lines
    assert not hopeless


def test_a_closed_partition_is_said(two: Cluster) -> None:
    two.run("scontrol", "update", "PartitionName=main", "State=DOWN")
    number = waits(two, "bob", "--mem=100", reason="PartitionDown")

    lines, _ = explain(two, number)
    two.run("scontrol", "update", "PartitionName=main", "State=UP")
    cancel(two, number)

    assert "The partition main is down. To open it: `scontrol update partition=main state=up`." in lines


def test_a_job_that_asks_more_than_any_node_has_can_never_run(two: Cluster) -> None:
    number = waits(two, "bob", "--hold", "--mem=100", reason="JobHeldUser")
    two.tried("scontrol", "update", f"JobId={number}", "MinMemoryNode=64000")

    lines, hopeless = explain(two, number)
    cancel(two, number)

    assert "Cannot run it: node[1-2] (only 1000 MiB of memory)" in lines
    assert lines[-1] == "It can never run: no node has what it asks for. Change its request, or cancel it."
    assert hopeless


def test_a_task_of_an_array_is_explained_by_either_number(two: Cluster) -> None:
    number = waits(two, "bob", "--hold", "--array=1-3", "--mem=100", reason="JobHeldUser")

    whole, _ = explain(two, number)
    task, _ = explain(two, f"{number}_2")
    cancel(two, number)

    assert whole[0].startswith(f"Job {number}_1-3 of bob asks for 1 CPU on ")
    assert [line for line in task if "held" in line] == [line for line in whole if "held" in line] != []


def test_jobs_that_run_ended_or_are_unknown_are_told_apart(two: Cluster) -> None:
    number = submit(two, "bob", "--mem=100")
    two.wait_for(lambda: "COMPLETED" in two.run("scontrol", "show", "job", number), 60, "it ends")

    assert explain(two, "1")[0][0].startswith("Job 1 is RUNNING on node1 since 20")
    assert explain(two, number)[0][0].startswith(f"Job {number} has ended: COMPLETED at 20")
    lines, hopeless = explain(two, "999")
    assert lines[0].startswith("slurmctld knows no job 999")
    assert hopeless
