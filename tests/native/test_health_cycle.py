"""Health checks of many nodes are spread over the interval."""

from __future__ import annotations

import collections
import re

import pytest
import yaml

from slurmstead.paths import ROOT
from tests.native.cluster import Cluster

NODES, INTERVAL = 24, 15
CHECK = "#!/bin/sh\necho $(date +%s) $SLURMD_NODENAME >>/share/checks\n"


@pytest.mark.slow
def test_not_all_nodes_are_checked_at_once_and_none_is_left_out(release: str) -> None:
    states = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_config_defaults"]
    keys = {
        "HealthCheckInterval": str(INTERVAL),
        "HealthCheckNodeState": states["HealthCheckNodeState"],
        "HealthCheckProgram": "/share/check",
    }
    with Cluster(release, NODES, keys) as cluster:
        cluster.run("tee", "/share/check", text=CHECK)
        cluster.run("chmod", "755", "/share/check")

        def rows() -> list[tuple[str, str]]:
            return re.findall(r"^(\d+) (\S+)$", cluster.tried("cat", "/share/checks").stdout, re.MULTILINE)

        cluster.wait_for(lambda: len(rows()) >= 2 * NODES, 8 * INTERVAL, "each node is checked twice")

        at_once = collections.Counter(second for second, _ in rows())
        assert {name for _, name in rows()} == set(cluster.nodes)
        # Ten at a time (run_health_check in src/slurmctld/ping_nodes.c); a slow computer may show two steps as one.
        assert max(at_once.values()) < NODES
