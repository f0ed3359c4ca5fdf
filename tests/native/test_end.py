"""Clusters share nothing, and leave nothing, even one whose process is killed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import pytest

from ansible.module_utils.slurmstead.gate import process as gate_process
from slurmstead.paths import ROOT
from tests.native.cluster import Cluster

PROGRAM = """
import sys
import tests.conftest
from tests.native.cluster import Cluster
with Cluster(nodes=2) as cluster:
    print(open(f"/proc/{cluster._init}/stat").read().split()[21], flush=True)
    sys.stdin.read()
"""
"""It prints when the first process of its cluster was started (proc(5)), and waits."""

OTHERS = ("/run/", *(f"{tempfile.gettempdir()}/{name}" for name in ("mmdebstrap.", "pytest-of-")))
"""Beginnings of places where sessions of users, an installation of packages and other tests mount."""


def traces() -> list[set[str]]:
    """Return what this computer shows to everybody: its mounts, its interfaces, and its temporary directories."""
    mounts = set(pathlib.Path("/proc/self/mounts").read_text().splitlines())
    # What else this computer does at the same time; a cluster mounts at /mnt and /proc only (inside.py).
    mounts = {mount for mount in mounts if not mount.split()[1].startswith(OTHERS)}
    directories = {str(path) for place in ("/mnt", "/run", "/tmp", "/sys/fs/cgroup") for path in _below(place)}
    return [mounts, set(os.listdir("/sys/class/net")), directories]


def _below(place: str) -> list[pathlib.Path]:
    return [path for path in pathlib.Path(place).glob("*") if path.is_dir() and "slurm" in path.name]


def namespaces(ancestor: int | None = None) -> set[str]:
    """Return the PID namespaces of all processes, or only those of the descendants of ``ancestor``."""
    parents: dict[int, int] = {}
    found: dict[int, str] = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(path.name)] = os.readlink(path / "ns/pid")
        except OSError:
            continue

    def descends(process: int) -> bool:
        while process and process != ancestor:
            process = parents.get(process, 0)
        return process == ancestor

    return {space for process, space in found.items() if ancestor is None or descends(process)}


def test_two_clusters_do_not_meet() -> None:
    with Cluster() as one, Cluster() as other:
        one.run("sbatch", "--output=/dev/null", "--wrap=sleep 600", user="alice")
        one.run("touch", "here", user="alice")

        assert one.addresses == other.addresses
        assert other.run("squeue", "--noheader") == ""
        assert other.tried("ls", "here", user="alice").returncode != 0


def test_a_cluster_that_does_not_start_says_why_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> int:
        raise gate_process.TooLongError("late")

    monkeypatch.setattr(gate_process, "first", late)
    cluster = Cluster()
    with pytest.raises(gate_process.TooLongError, match="late") as error:
        cluster.__enter__()

    assert "--- control" in error.value.__notes__[0]
    assert cluster._process.poll() is not None


def test_a_cluster_whose_process_is_killed_leaves_nothing() -> None:
    before = traces()
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout and owner.stdout.readline()
        made = namespaces(owner.pid) - {os.readlink("/proc/self/ns/pid")}
        assert len(made) >= 5, "a cluster of two nodes has five: its own, and one for each machine"
        assert traces() == before
        owner.kill()
        owner.wait()

        until = time.monotonic() + 60
        while left := made & namespaces():
            assert time.monotonic() < until, f"processes were left in {left}"
            time.sleep(0.05)
    assert traces() == before
