"""The client on the cluster itself, as in a notebook: no ssh, no rsync, and nothing but its own wheel."""

from __future__ import annotations

from tests.native import cell
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
        said = cell.run(cluster, CELL, 120)

    assert said.splitlines() == ["['4\\n', '9\\n']", "True"]
