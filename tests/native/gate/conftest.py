"""What tests of the gate share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.native.cluster import Cluster


@pytest.fixture(scope="module")
def busy(release: str) -> Iterator[Cluster]:
    """A cluster of four nodes on which three jobs run and twenty wait; a test leaves them as they are."""
    with Cluster(release, 4) as cluster:
        job = ["sbatch", "--output=/dev/null", "--mem=16"]
        for options in [["--nodelist=node1"]] + 2 * [[]] + 20 * [["--begin=now+2hours"]]:
            cluster.run(*job, *options, "--wrap=sleep 3600", user="alice")
        cluster.wait_for(lambda: queue(cluster).count(" RUNNING ") == 3, 60, "three jobs run")
        yield cluster


def queue(cluster: Cluster) -> str:
    """Return the jobs with their states and nodes."""
    return cluster.run("squeue", "--noheader", "--sort=i", "--format=%A %T %N")
