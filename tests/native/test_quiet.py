"""Quiet nodes beside real daemons: a job is alone there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from ansible.module_utils.slurmstead.conf.partitions import partitions
from ansible.module_utils.slurmstead.conf.text import slurm_lines
from slurmstead.paths import ROOT
from tests.native.cluster import Cluster

MAIN = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_partition_defaults"]
LINES = slurm_lines(partitions({}, MAIN, ["node3"], ["node1", "node2", "node3"]), "PartitionName")


@pytest.fixture(scope="module")
def three(release: str) -> Iterator[Cluster]:
    """A cluster whose node3 is quiet; a test leaves it idle."""
    with Cluster(release, 3, {"DefMemPerCPU": "240"}, partitions=LINES) as cluster:
        yield cluster


def test_a_job_that_asks_for_little_has_the_quiet_node_alone(three: Cluster) -> None:
    submit = ("sbatch", "--parsable", "--partition=quiet", "--mem=16M", "--output=/dev/null", "--wrap=sleep 600")
    first, second = three.run(*submit, user="alice"), three.run(*submit, user="bob")
    three.wait_until("allocated", ["node3"])

    shown = three.run("scontrol", "--oneliner", "show", "job", first)
    assert "NumCPUs=4 " in shown
    assert three.run("squeue", "--noheader", f"--jobs={second}", "--format=%T") == "PENDING"
    three.run("scancel", first, second)
    three.wait_until_idle()


def test_a_job_gets_the_memory_of_all_cpus(three: Cluster) -> None:
    shown = three.run("srun", "--partition=quiet", "sh", "-c", "scontrol show job $SLURM_JOB_ID", user="alice")

    assert "cpu=4,mem=960M" in shown


def test_a_job_without_a_partition_is_elsewhere(three: Cluster) -> None:
    assert three.run("srun", "--nodes=2", "hostname", user="alice").split() in (["node1", "node2"], ["node2", "node1"])
    refused = three.tried("srun", "--nodes=3", "--immediate=1", "true", user="alice")
    assert refused.returncode != 0
