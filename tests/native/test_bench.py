"""The measures of `stead bench scale` on real daemons."""

from __future__ import annotations

import pytest

from tests.bench import live
from tests.native.cluster import Cluster


@pytest.mark.slow
def test_all_measures_of_a_native_cluster_give_numbers(release: str) -> None:
    with Cluster(release, 2) as cluster:
        found = live.health(cluster, 60) | live.job_on_all(cluster) | live.publishing(cluster)
        found |= live.throughput(cluster, None, 20, 60)

    assert {name: value for name, value in found.items() if value <= 0} == {}
    # Two requests for each check of a node, each minute.
    assert found["health checks, requests/min"] == 2 * 2
