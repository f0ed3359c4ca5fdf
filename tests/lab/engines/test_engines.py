"""The examples do what docs/engines.md says of them."""

from __future__ import annotations

import re
from typing import Any

from tests.lab.engines.running import directory_of, output, submit

PRIMES = {0: 1229, 1: 1033, 2: 983, 3: 958, 4: 930, 5: 924}
"""How many primes are in each ten thousand numbers."""


def test_each_task_of_the_array_takes_its_own_line(cluster: Any, example: Any) -> None:
    run = submit(cluster, example("array"))
    said = cluster.user(f"cd {directory_of(cluster, run)}/tasks && head -n1 */stdout")
    seen = re.findall(r"==> (\d)/stdout <==\n(\d+) primes", said)

    assert {int(task): int(count) for task, count in seen} == PRIMES


def test_ranks_of_mpi_on_two_nodes_hear_each_other(cluster: Any, example: Any) -> None:
    said = output(cluster, submit(cluster, example("mpi")))
    ranks = re.findall(r"^rank (\d) of 4 on (\S+)$", said, re.MULTILINE)

    assert [rank for rank, _ in ranks] == ["0", "1", "2", "3"]
    assert len({node for _, node in ranks}) == 2
    assert "10 rounds of 65536 bytes: 60, expected 60" in said


def test_dask_computes_on_all_nodes_of_the_job_and_leaves_nothing(lab: Any, cluster: Any, example: Any) -> None:
    run = submit(cluster, example("dask"), "--nodes", 2, "--", 20_000)
    below = directory_of(cluster, run)

    assert output(cluster, run) == "below 20000, the chain of 17673 is the longest: 278 steps"
    assert output(cluster, run, "stderr").startswith("4 processes, ")
    assert cluster.user(f"ls -d {below}/work/dask-* || true") == ""
    # A run has ended when its program has, before the Epilog.
    lab.wait_until_idle(120)
