"""An experiment with CFiddle on a quiet node, submitted from a cell of a notebook."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest
import yaml

from ansible.module_utils.slurmstead.conf.partitions import partitions
from ansible.module_utils.slurmstead.conf.text import slurm_lines
from slurmstead.paths import ROOT
from tests.lab.engines.running import EXAMPLES, download, requirements
from tests.native import cell
from tests.native.cluster import ENVIRONMENT, Cluster

PACKAGES = ("g++", "libpfm4", "make", "python3-venv")
"""What docs/engines.md asks for, and what the role `slurmd` installs."""

PYTHON = {"bookworm": "3.11", "trixie": "3.13"}
MAIN = yaml.safe_load((ROOT / "roles/slurm/vars/main.yml").read_text())["__slurm_partition_defaults"]

CELL = """
import pathlib
from slurmstead.client import Client

client = Client()
run = client.submit("cfiddle", ["1"], partition="quiet", mem="900M", time="90")
result = client.result(run, to="results")
print(result.node)
print(*sorted(path.name for path in result.files))
print((result.directory / "work/times.png").read_bytes()[1:4])
print(result.stdout)
"""
"""As in docs/quiet.md, with the memory of a small node."""


@pytest.mark.slow
def test_a_cell_measures_compiled_code_on_a_quiet_node(release: str, tmp_path: pathlib.Path) -> None:
    needed = requirements(["cfiddle"])
    download(needed, tmp_path / "wheels", PYTHON[release])
    folder = tmp_path / "cfiddle"
    shutil.copytree(EXAMPLES / "cfiddle", folder)
    # The nodes reach no index of packages.
    (folder / "requirements.txt").write_text(f"--no-index\n--find-links /share/home/alice/wheels\n{needed}")
    lines = slurm_lines(partitions({}, MAIN, ["node2"], ["node1", "node2"]), "PartitionName")
    with Cluster(release, 2, partitions=lines, packages=PACKAGES) as cluster:
        packed = ["tar", "--create", "--directory", str(tmp_path), "cfiddle", "wheels"]
        unpack = cluster.command("tar", "--extract", "--no-same-owner", user="alice", seconds=300)
        with subprocess.Popen(packed, stdout=subprocess.PIPE) as archive:
            subprocess.run(unpack, stdin=archive.stdout, env=ENVIRONMENT, check=True)
        said = cell.run(cluster, CELL, 3600)

    node, files, picture, columns, _, *rows = said.splitlines()
    assert node == "node2"
    assert {"times.csv", "times.png"} <= set(files.split())
    assert picture == "b'PNG'"
    assert columns.split() == ["size", "256", "512", "1024", "2048"]
    assert [row.split()[-5] for row in rows] == 2 * ["along_columns", "along_rows"]
