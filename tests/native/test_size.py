"""As many nodes as a cluster may have: how long they take to come up, and to run a job on all of them."""

from __future__ import annotations

import time

import pytest

from tests.native.cluster import Cluster


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [64, 512])
def test_a_job_runs_on_all_nodes(release: str, nodes: int) -> None:
    with Cluster(release, nodes) as cluster:
        started = time.monotonic()
        seen = cluster.run("srun", f"-N{nodes}", "hostname", user="alice", seconds=120)
        seconds = time.monotonic() - started

    print(f"{release}, {nodes} nodes: up in {cluster.seconds:.1f} s, a job on all of them in {seconds:.1f} s")
    assert sorted(seen.split()) == sorted(cluster.nodes)
