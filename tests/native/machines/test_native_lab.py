"""A lab of containers: site.yml turns it into a cluster, a second run changes nothing, and nothing is left behind.

As root: pytest tests/native/machines
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from slurmstead.paths import ROOT, lab_directory

pytestmark = pytest.mark.slow

LAB = "native-test"
HOME = lab_directory(LAB)


def stead(*words: str, seconds: int = 600) -> str:
    """Return what a verb of stead prints; its failure fails the test."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "slurmstead", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "STEAD_LAB": LAB},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, f"{words} exited with {done.returncode}\n{done.stdout}"
    return done.stdout


def processes() -> list[str]:
    """The command lines that name the lab's directory."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_text(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if str(HOME) in text:
            found.append(text)
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """What the first run on a new lab of containers prints."""
    try:
        said = stead("lab", "up", "--native")
        assert "Left out: NFS" in said
        yield stead("up", "-i", "inventory/lab")
    finally:
        stead("lab", "down")


def test_a_second_run_changes_nothing(cluster: str) -> None:
    assert not re.search(r"\b0 changes on 4 hosts", cluster)
    assert re.search(r"\b0 changes on 4 hosts", stead("up", "-i", "inventory/lab"))


def test_machines_that_run_are_found_running(cluster: str) -> None:
    before = [(HOME / f"node{number}/pid").read_text() for number in range(1, 5)]
    stead("lab", "up", "--native")

    assert [(HOME / f"node{number}/pid").read_text() for number in range(1, 5)] == before


def test_jobs_run_on_all_workers(cluster: str) -> None:
    said = stead("lab", "ssh", "--user", "alice", "node3", "--", "srun", "--nodes=3", "hostname", seconds=120)

    assert sorted(said.split()) == ["node1", "node2", "node4"]


def test_a_batch_job_writes_its_output_to_the_share(cluster: str) -> None:
    job = "cd ~ && sbatch --wait --output=out.txt --wrap hostname > /dev/null && cat out.txt"
    said = stead("lab", "ssh", "--user", "alice", "node3", "--", job, seconds=120)

    assert said.strip() in {"node1", "node2", "node4"}


def test_down_leaves_nothing(cluster: str) -> None:
    assert processes()
    stead("lab", "down")

    assert not HOME.exists()
    assert str(HOME) not in pathlib.Path("/proc/mounts").read_text()
    assert not list(pathlib.Path("/sys/fs/cgroup").rglob(f"slurmstead-*-{LAB}-*"))
    assert processes() == []
