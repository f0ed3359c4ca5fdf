"""A job that is requeued during a change stops it only if slurmctld gave the job up."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.native import conf
from tests.native.cluster import Cluster
from tests.native.gate.program import run

JOB = ("sbatch", "--parsable", "--output=/dev/null", "--mem=10", "--exclusive")
KEYS = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
PARTITIONS = f"{conf.PARTITIONS}\nPartitionName=first Nodes=ALL PriorityTier=10 PreemptMode=OFF"
ON_REQUEST = {
    "requeue": "setpriv --reuid=alice --regid=alice --init-groups scontrol requeue",
    "preemption": f"{' '.join(JOB)} --partition=first --wrap='sleep 600' && true",
}
GIVEN_UP = "scontrol update NodeName=node1 State=DOWN Reason=fan && true"


@pytest.fixture
def cluster(release: str) -> Iterator[Cluster]:
    """A cluster of one node, published by us."""
    with Cluster(release, 1, KEYS, partitions=PARTITIONS) as cluster:
        run(cluster, "publish", "{}")
        yield cluster


def error(cluster: Cluster, key: str, command: str) -> str:
    """Change a key while a job is removed from its node by a command; return the error of the run."""
    job = cluster.run(*JOB, "--wrap=sleep 600", user="alice")
    cluster.wait_for(lambda: "RUNNING" in cluster.run("squeue", "--format=%T", f"--jobs={job}"), 60, "it runs")
    waits = f"until squeue --noheader --format=%T --jobs={job} | grep -q PENDING; do sleep 0.1; done"
    return str(
        json.loads(run(cluster, "publish", json.dumps({key: 4711}), "meanwhile", f"{command} {job}\n{waits}"))["error"]
    )


# MaxJobCount needs a restart before 23.11; KillWait is reread.
@pytest.mark.parametrize("key", ["KillWait", "MaxJobCount"])
@pytest.mark.parametrize("why", ON_REQUEST)
def test_a_job_that_is_requeued_on_request_does_not_stop_it(cluster: Cluster, key: str, why: str) -> None:
    assert error(cluster, key, ON_REQUEST[why]) == ""


def test_a_job_of_a_node_that_failed_takes_it_back(cluster: Cluster) -> None:
    said = error(cluster, "KillWait", GIVEN_UP)

    assert "job 1 (running on node1) was removed from its nodes and requeued" in said
    assert "The last good configuration is active again" in said
