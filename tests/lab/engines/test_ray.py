"""Ray, which needs nodes with more memory than those of a lab have: one that was made with STEAD_LAB_MEMORY=3584."""

from __future__ import annotations

from typing import Any

from tests.lab.engines.running import output, submit


def test_ray_computes_on_all_nodes_of_the_job_and_leaves_nothing(lab: Any, cluster: Any, example: Any) -> None:
    run = submit(cluster, example("ray"), "--", 1_000_000)
    below = f"{cluster.variables['STEAD_DIRECTORY']}/runs/{run}"

    assert output(cluster, run) == "1000000 darts: pi is about 3.142540"
    assert "\n2 of 2 nodes, " in output(cluster, run, "stderr")
    assert cluster.user(f"ls -d {below}/work/ray-* || true") == ""
    # A run has ended when its program has, before the Epilog.
    lab.wait_until_idle(120)
