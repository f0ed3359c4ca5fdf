"""The client on the cluster itself, as in a notebook: no ssh, no rsync, and nothing but its own wheel."""

from __future__ import annotations

import base64
import io
import pathlib
import tarfile

import pathspec

from slurmstead.client import wheel
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


def library() -> str:
    """Return the unpacked wheel and pathspec, which it needs, as an archive in Base64."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in wheel.sources().items():
            entry = tarfile.TarInfo(f"library/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        archive.add(pathlib.Path(pathspec.__file__).parent, "library/pathspec")
    return base64.b64encode(buffer.getvalue()).decode()


def test_a_cell_on_a_worker_submits_waits_and_gets_results(release: str) -> None:
    with Cluster(release, nodes=2) as cluster:
        cluster.run("sh", "-c", "base64 -d | tar -xz -C /share/home/alice --no-same-owner", text=library())
        environment = ("env", "PYTHONPATH=/share/home/alice/library", "STEAD_HEAD=local")
        said = cluster.run(*environment, "python3", "-c", CELL, user="alice", on="node1", seconds=120)

    assert said.splitlines() == ["['4\\n', '9\\n']", "True"]
