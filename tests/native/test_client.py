"""The client on the cluster itself, as in a notebook: no ssh, no rsync, and nothing but its own wheel."""

from __future__ import annotations

import base64

from tests.client import library
from tests.native.cluster import Cluster

CELL = """
import pathlib
from slurmstead.client import Client, JobFailed

folder = pathlib.Path.home() / "project"
folder.mkdir()
(folder / "main.py").write_text("import sys; print(int(sys.argv[1]) ** 2)")
client = Client()
run = client.map(folder, [["2"], ["3"]], entry="main.py", time="5")
print([result.stdout for result in client.results(run, to=pathlib.Path.home() / "results")])
try:
    client.result(client.submit(folder, ["x"], entry="main.py"))
except JobFailed as error:
    print("ValueError" in error.tail)
"""


def test_a_cell_on_a_worker_submits_waits_and_gets_results(release: str) -> None:
    with Cluster(release, nodes=2) as cluster:
        unpack = "mkdir library && base64 -d | tar -xz -C library --no-same-owner"
        cluster.run("sh", "-c", f"cd /share/home/alice && {unpack}", text=base64.b64encode(library()).decode())
        environment = ("env", "PYTHONPATH=/share/home/alice/library", "STEAD_HEAD=local")
        said = cluster.run(*environment, "python3", "-c", CELL, user="alice", on="node1", seconds=120)

    assert said.splitlines() == ["['4\\n', '9\\n']", "True"]
