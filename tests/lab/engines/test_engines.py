"""The examples do what docs/engines.md says of them."""

from __future__ import annotations

import re
import time
from typing import Any

PRIMES = {0: 1229, 1: 1033, 2: 983, 3: 958, 4: 930, 5: 924}
"""How many primes are in each ten thousand numbers."""


def submit(cluster: Any, *arguments: object, code: int = 0) -> str:
    """Return the run of a submission that has ended."""
    return str(cluster.run_of(cluster.stead("submit", "--wait", *arguments, code=code, seconds=540)))


def output(cluster: Any, run: str) -> str:
    """Return the standard output of a run."""
    return str(cluster.user(f"cat {cluster.variables['STEAD_DIRECTORY']}/runs/{run}/stdout"))


def test_each_task_of_the_array_takes_its_own_line(cluster: Any, example: Any) -> None:
    run = submit(cluster, example("array"))
    said = cluster.user(f"cd {cluster.variables['STEAD_DIRECTORY']}/runs/{run}/tasks && head -n1 */stdout")
    seen = re.findall(r"==> (\d)/stdout <==\n(\d+) primes", said)

    assert {int(task): int(count) for task, count in seen} == PRIMES


def test_ranks_of_mpi_on_two_nodes_hear_each_other(cluster: Any, example: Any) -> None:
    said = output(cluster, submit(cluster, example("mpi")))
    ranks = re.findall(r"^rank (\d) of 4 on (\S+)$", said, re.MULTILINE)

    assert [rank for rank, _ in ranks] == ["0", "1", "2", "3"]
    assert len({node for _, node in ranks}) == 2
    assert "10 rounds of 65536 bytes: 60, expected 60" in said


def test_a_rank_that_fails_ends_the_others_and_the_job(cluster: Any, example: Any) -> None:
    folder = example("mpi")
    (folder / "fails.py").write_text(
        "import sys, time\nfrom mpi4py import MPI\n"
        "if MPI.COMM_WORLD.Get_rank() == 3:\n    sys.exit(7)\ntime.sleep(500)\n"
    )
    started = time.monotonic()
    run = submit(cluster, folder, "--", "fails.py", code=4)

    assert cluster.jobs()[run]["state"] == "failed"
    assert time.monotonic() - started < 300


def test_dask_computes_on_all_nodes_of_the_job_and_leaves_nothing(cluster: Any, example: Any) -> None:
    run = submit(cluster, example("dask"), "--nodes", 3, "--", 20_000)
    below = f"{cluster.variables['STEAD_DIRECTORY']}/runs/{run}"

    assert output(cluster, run) == "below 20000, the chain of 17673 is the longest: 278 steps"
    assert cluster.user(f"cat {below}/stderr").startswith("6 processes, ")
    assert cluster.user(f"ls -d {below}/work/dask-* || true") == ""
    assert cluster.user("squeue --me --noheader") == ""


def test_an_island_of_deap_ends_where_its_seed_leads(cluster: Any, example: Any) -> None:
    folder = example("deap")
    one = submit(cluster, folder, "--array", "0-1", "--cpus", 1, "--", 5)
    two = submit(cluster, folder, "--array", "0-1", "--cpus", 2, "--", 5)
    below = f"{cluster.variables['STEAD_DIRECTORY']}/runs"
    first, second = (cluster.user(f"cat {below}/{run}/tasks/*/work/best-*.json") for run in (one, two))

    assert first == second
    assert len(set(first.splitlines())) == 2
