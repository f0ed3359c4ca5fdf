"""What the doctor reads of real daemons and a real network: steps that one side has lost, and a firewall."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible.module_utils.slurmstead.doctor.findings import Cluster as Facts
from ansible.module_utils.slurmstead.doctor.findings import jobs as job_findings
from ansible.module_utils.slurmstead.doctor.findings import network as network_findings
from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.cluster import Cluster

JOB = ("sbatch", "--parsable", "--output=/dev/null", "--nodelist=node1", "--wrap=sleep 600")
STEPD = ("pgrep", "-f", "[s]lurmstepd: .[0-9]")


@pytest.fixture(scope="module")
def two(release: str) -> Iterator[Cluster]:
    """A cluster of two nodes."""
    with Cluster(release, 2, {"SlurmdTimeout": "300"}) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait until a step is a minute old."""
    monkeypatch.setattr(job_findings, "SETTLED", -60.0)


def call(cluster: Cluster, on: str, module: str, function: str, **arguments: Any) -> Any:
    """Return what a function of our modules returns on a machine."""
    program = remote_call.program(f"doctor.facts.{module}", function, arguments)
    return json.loads(cluster.run("python3", "-IS", "-", text=program, on=on).splitlines()[-1])


def facts(cluster: Cluster) -> Facts:
    """Return what the rules about jobs judge."""
    machines = {
        name: {"wanted": {"units": ["slurmd"]}, "steps": call(cluster, name, "jobs", "here")} for name in cluster.nodes
    }
    control = {"wanted": {"units": ["slurmctld"]}, "slurm": call(cluster, "control", "jobs", "known")}
    return Facts("control", {}, {**machines, "control": control})


def seen(cluster: Cluster) -> list[tuple[str, str, str]]:
    known = facts(cluster)
    found = [*job_findings.orphans(known), *job_findings.missing_steps(known)]
    return [(finding.host, finding.about, finding.seen) for finding in found]


def start(cluster: Cluster) -> str:
    """Start a job on node1; return its number."""
    number = cluster.run(*JOB, user="alice")
    cluster.wait_for(lambda: cluster.tried(*STEPD, on="node1").stdout, 60, "the job runs")
    cluster.wait_for(lambda: number in cluster.run("squeue", "--steps", "--noheader"), 60, "its step is known")
    return number


def test_a_job_without_processes_is_found(two: Cluster) -> None:
    number = start(two)
    assert seen(two) == []
    # No slurmd tells slurmctld.
    two.stop("node1", "KILL")
    two.run("pkill", "-KILL", "-f", "[s]lurmstepd|[s]leep 600", on="node1")

    assert seen(two) == [("node1", "job", f"slurmctld has job {number} running here, but no process of it is left")]
    two.run("scancel", number)
    two.start("node1")
    two.wait_until_idle()


def test_a_step_of_a_forgotten_job_is_found(two: Cluster) -> None:
    number = start(two)
    pids = two.run(*STEPD, on="node1").split()
    # It hears no signal of slurmd, and slurmctld forgets the job.
    two.run("kill", "-STOP", *pids, on="node1")
    two.stop("control")
    two.run("sh", "-c", "rm -f /var/lib/slurm/slurmctld/job_state*")
    two.start("control")

    assert seen(two) == [("node1", "orphan", f"it has a slurmstepd of job {number}, which slurmctld does not know")]
    two.run("kill", "-KILL", *pids, on="node1")
    two.wait_until_idle()


def test_a_firewall_of_a_worker_is_found_and_a_port_without_a_listener_is_none(two: Cluster) -> None:
    peers = {"node2": [6818, 60001], "control": [6817, 60001]}
    assert call(two, "node1", "network", "unreached", peers=peers) == {}
    # Its answers are dropped.
    route = f"blackhole {two.addresses['node1']}/32".split()
    two.run("ip", "route", "add", *route, on="node2")

    unreached = call(two, "node1", "network", "unreached", peers=peers)
    two.run("ip", "route", "del", *route, on="node2")

    assert unreached == {"node2": {"6818": "no answer", "60001": "no answer"}}
    (finding,) = network_findings.blocked_ports(Facts("control", {}, {"node1": {"unreached": unreached}}))
    assert finding.seen == "it does not reach node2 on TCP port 6818 (no answer) and 60001 (no answer)"


def test_each_machine_knows_the_mtu_of_its_address(two: Cluster) -> None:
    two.run("ip", "link", "set", "eth0", "mtu", "1400", on="node2")

    sizes = {name: call(two, name, "network", "mtus") for name in two.nodes}

    assert sizes == {"node1": {two.addresses["node1"]: 1500}, "node2": {two.addresses["node2"]: 1400}}
