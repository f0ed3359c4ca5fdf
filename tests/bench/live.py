"""Measures on a native cluster: real daemons on machines that are namespaces of this computer."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from typing import Any

from slurmstead.paths import ROOT
from tests.native.cluster import CONTROL, NAME, Cluster
from tests.native.gate.program import run as run_program

SCHEDULER = "SchedulerParameters"
PROGRAM = ROOT / "roles/slurmd/files/health_check.py"
CHECKS = 20
ASKED = ("REQUEST_PARTITION_INFO", "REQUEST_NODE_INFO_SINGLE", "REQUEST_NODE_INFO")
TICKS = os.sysconf("SC_CLK_TCK")


def processor(cluster: Cluster) -> float:
    """Return the processor time of slurmctld in seconds; it grows while the daemon is not restarted."""
    pid = cluster.run("pgrep", "-x", NAME.format("slurmctld")).split()[0]
    fields = cluster.run("cat", f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def counted(cluster: Cluster, title: str) -> int:
    """Return a number from sdiag(1), by a pattern for its title; 0 if it is not shown."""
    found = re.search(rf"{title}:\s*(\d+)", cluster.run("sdiag"))
    return int(found[1]) if found else 0


def timed(work: Callable[[], Any]) -> float:
    """Return how long something takes, in seconds."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def job_on_all(cluster: Cluster) -> dict[str, float]:
    """Run one job on all nodes, which is what the smoke test waits for longest."""
    words = ("srun", f"-N{len(cluster.nodes)}", "hostname")
    return {"job on all nodes, s": timed(lambda: cluster.run(*words, user="alice", seconds=300))}


def publishing(cluster: Cluster) -> dict[str, float]:
    """Try, publish and prove a change that needs a reconfigure."""

    def change(*mode: str) -> None:
        said = json.loads(run_program(cluster, "publish", json.dumps({"MinJobAge": "250"}), *mode))
        assert not said["error"], said["error"]

    return {"gate, s": timed(lambda: change("check")), "publish, s": timed(change)}


def throughput(cluster: Cluster, parameters: str | None, jobs: int, seconds: float) -> dict[str, float]:
    """Run short jobs with some SchedulerParameters for a limited time.

    :return: finished jobs per second, and slurmctld's processor time per finished job in ms
    """
    cluster.configure(SchedulerParameters=parameters)
    # Before 23.11, a reconfigure resets no parameter to its default.
    cluster.restart(CONTROL)
    cluster.wait_until_idle()
    cluster.run("sdiag", "--reset")
    before, started = processor(cluster), time.monotonic()
    for first in range(0, jobs, 10000):
        size = min(10000, jobs - first)
        words = ("sbatch", "--parsable", f"--array=1-{size}", "--output=/dev/null", "--mem=1", "--wrap=true")
        cluster.run(*words, user="alice", seconds=300)
    done = 0
    while done < jobs and time.monotonic() - started < seconds:
        time.sleep(0.5)
        done = counted(cluster, "Jobs completed")
    wall, used = time.monotonic() - started, processor(cluster) - before
    cluster.run("scancel", "--user=alice", "--state=PENDING", seconds=300)
    cluster.run("scancel", "--user=alice", seconds=300)
    cluster.wait_until_idle()
    return {"jobs/s": done / wall, "slurmctld ms/job": 1000 * used / max(1, done)}


def scheduling(cluster: Cluster, ours: str, jobs: int, seconds: float) -> dict[str, float]:
    """Compare Slurm's default parameters of the scheduler with ours."""
    found = {}
    for name, parameters in (("default", None), ("ours", ours)):
        found |= {
            f"{key}, {jobs} jobs, {name}": value
            for key, value in throughput(cluster, parameters, jobs, seconds).items()
        }
    return found


def health(cluster: Cluster, seconds: int) -> dict[str, float]:
    """Run a node's health check, and scale it to all nodes.

    :param seconds: the interval between two checks of a node
    :return: requests and kB a minute for all nodes, and slurmctld's processor time for one check in ms
    """
    cluster.run("tee", "/root/check", text=PROGRAM.read_text(), on="node1")
    check = ("env", "SLURMD_NODENAME=node1", "python3", "-IS", "/root/check")
    # The first may drain the node, whose declared CPUs this computer need not have.
    cluster.run(*check, on="node1")
    cluster.run("sdiag", "--reset")
    bytes_before, used_before = received(cluster), processor(cluster)
    for _ in range(CHECKS):
        cluster.run(*check, on="node1")
    kilobytes, used = (received(cluster) - bytes_before) / 1000, processor(cluster) - used_before
    requests = sum(counted(cluster, rf"{kind} .*count") for kind in ASKED) if CHECKS else 0
    cluster.run("scontrol", "update", "NodeName=node1", "State=RESUME")
    minute = len(cluster.nodes) * 60 / seconds / CHECKS
    return {
        "health checks, requests/min": requests * minute,
        "health checks, kB/min": kilobytes * minute,
        "health check, slurmctld ms": 1000 * used / CHECKS,
    }


def received(cluster: Cluster) -> int:
    """Return the bytes that node1 has received."""
    return int(cluster.run("cat", "/sys/class/net/eth0/statistics/rx_bytes", on="node1"))
