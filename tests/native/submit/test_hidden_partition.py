"""Runs in a partition that their user cannot see."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

from tests.native.cluster import Cluster
from tests.native.conf import PARTITIONS
from tests.native.laptop import environment

HIDDEN = f"{PARTITIONS}\nPartitionName=hidden Hidden=YES Nodes=ALL State=UP"


def test_a_run_in_a_hidden_partition_is_seen_and_cancelled(release: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "sleeper"
    folder.mkdir()
    (folder / "main.py").write_text("import time; time.sleep(600)")
    with Cluster(release, partitions=HIDDEN) as cluster:
        variables = {**environment(cluster, tmp_path), "STEAD_HEAD": "alice@control"}

        def stead(*words: str) -> str:
            command = [sys.executable, "-P", "-m", "slurmstead", *words]
            done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        def state() -> str:
            return str(json.loads(stead("jobs", "--json"))[0]["state"])

        stead("submit", str(folder), "--partition=hidden", "--id=sleeper")
        before = state()
        said = stead("cancel", "sleeper")

        assert before in ("pending", "running")
        assert "cancelled" in said
        cluster.wait_for(lambda: state() == "cancelled", 120, "the run is cancelled")
