"""Daemons and machines can be stopped, killed and cut off, and Slurm sees what it would see of real ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.native.cluster import Cluster

QUEUE = ("squeue", "--noheader", "--sort=i", "--format=%A %T %N")
SLEEP = ("pgrep", "-x", "--uid=alice", "sleep")
DOWN = 60


@pytest.fixture(scope="module")
def two(release: str) -> Iterator[Cluster]:
    """A cluster of two nodes that soon takes a silent one for down; a test leaves both idle."""
    with Cluster(release, 2, {"SlurmdTimeout": "5"}) as cluster:
        yield cluster


def submit(cluster: Cluster, *options: str) -> str:
    """Submit a job of ten minutes; return its number."""
    job = ["sbatch", "--parsable", "--output=/dev/null", *options, "--wrap=sleep 600"]
    return cluster.run(*job, user="alice")


def test_a_killed_slurmd_is_down_until_it_is_started(two: Cluster) -> None:
    two.stop("node1", "KILL")

    two.wait_until("down*", ["node1"], DOWN)
    assert two.states()["node2"] == "idle"
    two.start("node1")
    two.wait_until_idle()


def test_a_job_of_a_machine_without_power_is_queued_again(two: Cluster) -> None:
    number = submit(two, "--nodelist=node1")
    two.wait_until("mixed", ["node1"])

    two.kill("node1")

    two.wait_until("down*", ["node1"], DOWN)
    assert f"{number} PENDING" in two.run(*QUEUE)
    two.run("scancel", number)
    two.boot("node1")
    two.wait_until_idle()


def test_a_machine_without_network_is_down_and_its_job_goes_on(two: Cluster) -> None:
    number = submit(two, "--nodelist=node2", "--no-requeue")
    two.wait_for(lambda: two.tried(*SLEEP, on="node2").stdout, 60, "the job runs")
    before = two.run(*SLEEP, on="node2")

    two.cut("node2")

    two.wait_until("down*", ["node2"], DOWN)
    assert two.run(*SLEEP, on="node2") == before
    two.join("node2")
    two.wait_until_idle()
    assert number not in two.run(*QUEUE)


def test_a_restart_of_slurmctld_keeps_the_queue(two: Cluster) -> None:
    numbers = [submit(two), submit(two, "--begin=now+1hour"), submit(two, "--hold")]
    two.wait_for(lambda: f"{numbers[0]} RUNNING" in two.run(*QUEUE), 60, "the first job runs")
    before = two.run(*QUEUE)

    two.restart()

    assert two.run(*QUEUE) == before
    two.run("scancel", *numbers)
    two.wait_until_idle()


def test_a_restart_of_slurmd_keeps_its_job(two: Cluster) -> None:
    number = submit(two, "--nodelist=node1")
    two.wait_for(lambda: two.tried(*SLEEP, on="node1").stdout, 60, "the job runs")
    before = two.run(*SLEEP, on="node1")

    two.restart("node1")

    assert f" {number} " in two.run("scontrol", "listpids", number, on="node1")
    assert two.run(*SLEEP, on="node1") == before
    two.run("scancel", number)
    two.wait_until_idle()
