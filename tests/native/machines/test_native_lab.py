"""A lab of containers: site.yml turns it into a cluster, a second run changes nothing, and nothing is left behind.

As root: pytest tests/native/machines
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from slurmstead.paths import ROOT, lab_directory

pytestmark = pytest.mark.slow

LAB = "native-test"
HOME = lab_directory(LAB)


def tried(*words: str, seconds: int = 600) -> subprocess.CompletedProcess[str]:
    """Run a verb of stead."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "slurmstead", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "STEAD_LAB": LAB},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )


def stead(*words: str, seconds: int = 600) -> str:
    """Return what a verb of stead prints; its failure fails the test."""
    done = tried(*words, seconds=seconds)
    assert done.returncode == 0, f"{words} exited with {done.returncode}\n{done.stdout}"
    return done.stdout


def processes() -> list[str]:
    """The command lines that name the lab's directory."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (path / "cmdline").read_text(errors="replace").replace("\0", " ")
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


def on(machine: str, command: str, user: str = "debian") -> str:
    """Return what a command prints on a machine."""
    return stead("lab", "ssh", "--user", user, machine, "--", command, seconds=120).strip()


def test_what_leaves_the_workers_is_removed_once_slurm_knows(cluster: str, tmp_path: pathlib.Path) -> None:
    site = str(shutil.copytree(ROOT / "inventory/lab", tmp_path / "site"))
    hosts = tmp_path / "site/hosts.yml"
    inventory = yaml.safe_load(hosts.read_text())
    inventory["all"]["hosts"]["node4"]["slurm_quiet"] = True
    hosts.write_text(yaml.safe_dump(inventory))
    stead("up", "-i", site)
    del inventory["all"]["hosts"]["node4"]["slurm_quiet"], inventory["workers"]["hosts"]["node2"]
    inventory["login"] = {"hosts": {"node2": None}}
    hosts.write_text(yaml.safe_dump(inventory))
    look = (
        "ls /usr/local/lib/slurmstead/*log.d /run/slurm; systemctl is-active slurmd; systemctl is-enabled slurmd; true"
    )

    job = on("node3", "sbatch --parsable --hold --partition=quiet --wrap true", "alice")
    refused = tried("up", "-i", site)
    seen = {name: on(name, look).split() for name in ("node2", "node4")}
    on("node3", f"scancel {job}", "alice")
    stead("up", "-i", site)

    assert "partition quiet removed: refused" in refused.stdout
    assert seen["node4"].count("slurmstead-quiet") == 2
    assert {"conf", "active", "enabled"} <= {*seen["node2"]}
    assert "slurmstead-quiet" not in on("node4", look)
    assert {"inactive", "disabled"} <= {*on("node2", look).split()}
    assert "conf" not in on("node2", look).split()
    assert on("node2", "sinfo --noheader --format=%D", "alice") == "2"
    assert re.search(r"\b0 changes on 4 hosts", stead("up", "-i", site))


def test_down_leaves_nothing(cluster: str) -> None:
    assert processes()
    stead("lab", "down")

    assert not HOME.exists()
    assert str(HOME) not in pathlib.Path("/proc/mounts").read_text()
    assert not list(pathlib.Path("/sys/fs/cgroup").rglob(f"slurmstead-*-{LAB}-*"))
    assert processes() == []
