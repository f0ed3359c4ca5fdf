"""What a node asks of slurmctld does not grow with the number of the other nodes."""

from __future__ import annotations

import pytest

from slurmstead.paths import ROOT
from tests.native.cluster import Cluster

PROGRAM = ROOT / "roles/slurmd/files/health_check.py"
CHECK = ("env", "SLURMD_NODENAME=node1", "python3", "-IS", "/root/health-check")


class Listed(Cluster):
    """A cluster of one machine, and of nodes that are only lines of slurm.conf and so cost nothing else."""

    listed = 0

    def slurm_conf(self) -> str:
        """Return slurm.conf with these nodes."""
        lines = (f"NodeName=off{number} NodeAddr=10.1.200.1 State=DOWN\n" for number in range(self.listed))
        return super().slurm_conf() + "".join(lines)


def program(cpus: int) -> str:
    """Return the health check as it is on a computer with that many CPUs, and with enough memory."""
    text = PROGRAM.read_text()
    assert text.count("cpus(), memory()") == 1
    return text.replace("cpus(), memory()", f"{cpus}, 1 << 30")


def received(cluster: Cluster) -> int:
    """Return the bytes that node1 has received from its network."""
    return int(cluster.run("cat", "/sys/class/net/eth0/statistics/rx_bytes", on="node1"))


def fetched(release: str, others: int) -> int:
    """Return the bytes that a health check makes slurmctld send, on a cluster with that many other nodes."""
    cluster = Listed(release)
    cluster.listed = others
    with cluster:
        cluster.run("tee", "/root/health-check", text=program(cpus=1), on="node1")
        cluster.run("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=slurmstead: a [b] c @d")
        # That CPUs are missing is the reason then, and the next check changes nothing.
        cluster.run(*CHECK, on="node1")
        before = received(cluster)
        assert cluster.run(*CHECK, on="node1") == ""
        return received(cluster) - before


@pytest.mark.parametrize("others", [400])
def test_a_health_check_fetches_its_own_node_only(release: str, others: int) -> None:
    alone, among = fetched(release, 4), fetched(release, others)

    print(f"{release}: {alone} bytes with 4 other nodes, {among} with {others}")
    assert 0 < among < 1.5 * alone


def test_a_health_check_resumes_what_it_drained_and_nothing_else(four: Cluster) -> None:
    four.run("tee", "/root/health-check", text=program(cpus=9999), on="node1")
    for reason, state in (("slurmstead: a [b] c @d", "idle"), ("fan", "drained")):
        four.run("scontrol", "update", "NodeName=node1", "State=DRAIN", f"Reason={reason}")
        four.run(*CHECK, on="node1")
        four.wait_until(state, ["node1"])
    assert four.run("sinfo", "--noheader", "--nodes=node1", "--format=%E") == "fan"
    four.run("scontrol", "update", "NodeName=node1", "State=RESUME")
    four.wait_until("idle", ["node1"])
