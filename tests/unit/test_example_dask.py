"""examples/dask: what a node's workers are started with."""

from __future__ import annotations

import json
import pathlib
import runpy
from typing import Any

import pytest

from slurmstead.paths import ROOT


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """examples/dask/worker.py on a node that a job has, with 700 MiB and one CPU."""
    monkeypatch.setenv("SLURMD_NODENAME", "10.99.0.1")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "700")
    return runpy.run_path(str(ROOT / "examples" / "dask" / "worker.py"))


@pytest.mark.parametrize(("head", "bytes_each"), [("10.99.0.1", 400_000_000), ("10.99.0.12", 700_000_000)])
def test_memory_for_the_scheduler_is_left_on_its_node_alone(
    worker: dict[str, Any], tmp_path: pathlib.Path, head: str, bytes_each: int
) -> None:
    (tmp_path / "scheduler.json").write_text(json.dumps({"address": f"tls://{head}:40123"}))

    assert f"--memory-limit={bytes_each}" in worker["command"](tmp_path)
