"""What an administrator sets with scontrol at run time stays, unless the inventory changes that very key."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.native.cluster import Cluster
from tests.native.gate.program import run

PARTITION = {
    **{"State": "DOWN", "MaxTime": "00:30:00", "Nodes": "node1", "PriorityTier": "7"},
    **{"LLN": "YES", "CpuBind": "cores"},
}
NODE = {"AvailableFeatures": "fast,big", "CpuBind": "cores", "Weight": "9"}


def published(cluster: Cluster, *arguments: str, **keys: Any) -> dict[str, Any]:
    """Publish the configuration with other keys; return the report."""
    said: dict[str, Any] = json.loads(run(cluster, "publish", json.dumps(keys), *arguments))
    assert said["error"] == ""
    return said


def shown(cluster: Cluster, *record: str) -> dict[str, str]:
    """Return the fields of a partition or node."""
    text = cluster.run("scontrol", "--oneliner", "show", *record)
    return dict(re.findall(r"(\S+?)=(\S*)", text))


def decided(cluster: Cluster) -> tuple[dict[str, str], dict[str, str]]:
    """Return the present values of what the administrator sets."""
    partition, node = shown(cluster, "partition", "main"), shown(cluster, "node", "node2")
    # CpuBind is shown only if it is set.
    return {key: partition.get(key, "") for key in PARTITION}, {key: node.get(key, "") for key in NODE}


@pytest.fixture
def cluster(release: str) -> Iterator[Cluster]:
    """A cluster of two nodes, published by us, with a job; then an administrator decides."""
    with Cluster(release, 2) as cluster:
        cluster.wait_until_idle()
        published(cluster)
        cluster.run("sbatch", "--output=/dev/null", "--nodelist=node2", "--wrap=sleep 3600", user="alice")
        cluster.wait_until("mixed", ["node2"])
        cluster.run("scontrol", "update", "PartitionName=main", *(f"{key}={value}" for key, value in PARTITION.items()))
        cluster.run("scontrol", "update", "NodeName=node2", *(f"{key}={value}" for key, value in NODE.items()))
        assert decided(cluster) == (PARTITION, NODE)
        yield cluster


def test_a_run_that_changes_nothing_leaves_it(cluster: Cluster) -> None:
    # The run makes workers report their jobs once slurmctld has been up for some time.
    time.sleep(36)

    assert published(cluster)["plan"] == []

    assert decided(cluster) == (PARTITION, NODE)


# MaxJobCount needs a restart before 23.11; KillWait is reread.
@pytest.mark.parametrize("key", ["KillWait", "MaxJobCount"])
def test_a_change_elsewhere_keeps_it_and_says_so(cluster: Cluster, key: str) -> None:
    cluster.run("scontrol", "create", "PartitionName=guests", "Nodes=node2", "MaxTime=5")
    topology = "YES" if cluster.release == "trixie" else None
    if topology:
        cluster.run("scontrol", "update", "PartitionName=main", f"ExclusiveTopo={topology}")

    said = published(cluster, **{key: 4711})

    assert decided(cluster) == (PARTITION, NODE)
    assert shown(cluster, "partition", "main").get("ExclusiveTopo") == topology
    assert shown(cluster, "partition", "guests")["MaxTime"] == "00:05:00"
    lines = "\n".join(said["warnings"])
    assert re.search(r"PartitionName=main .*State=DOWN.* was set at run time and was set again", lines)
    assert re.search(r"NodeName=node2 .*Weight=9.* was set again", lines)
    assert published(cluster, **{key: 4711})["warnings"] == []


def test_a_jump_of_the_clock_keeps_it(cluster: Cluster) -> None:
    before = cluster.run("pgrep", "-o", "slurmctld")

    said = published(cluster, "jump")["warnings"]

    assert cluster.run("pgrep", "-o", "slurmctld") != before
    assert decided(cluster) == (PARTITION, NODE)
    assert any(line.startswith("PartitionName=main") for line in said)


def test_no_job_starts_meanwhile_in_a_closed_partition(cluster: Cluster) -> None:
    waiting = cluster.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 3600", user="alice").strip()

    published(cluster, KillWait=47)
    published(cluster, MaxJobCount=4711)

    assert cluster.run("squeue", "--noheader", "--format=%T", f"--jobs={waiting}").strip() == "PENDING"


def test_the_inventory_wins_where_it_changes_that_very_key(cluster: Cluster) -> None:
    said = published(cluster, "replace", "MaxTime=INFINITE", "MaxTime=60")

    assert decided(cluster) == ({**PARTITION, "MaxTime": "01:00:00"}, NODE)
    expected = "PartitionName=main: MaxTime=00:30:00 was set at run time, and the inventory now says 01:00:00"
    assert expected in said["warnings"]


def test_a_failed_change_keeps_it(cluster: Cluster) -> None:
    report = json.loads(run(cluster, "publish", json.dumps({"KillWait": 47}), "fail"))

    assert "The last good configuration is active again" in report["error"]
    assert decided(cluster) == (PARTITION, NODE)


def test_a_run_that_was_killed_is_completed_by_the_next(cluster: Cluster) -> None:
    run(cluster, "publish", json.dumps({"KillWait": 47}), "die")
    assert decided(cluster) != (PARTITION, NODE)

    published(cluster, KillWait=47)

    assert decided(cluster) == (PARTITION, NODE)


def test_nothing_is_left_of_the_reservation(cluster: Cluster) -> None:
    published(cluster, KillWait=47)

    assert "No reservations" in cluster.run("scontrol", "show", "reservation")
