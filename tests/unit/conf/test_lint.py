"""What Slurm takes and nobody can mean is found, and what is meant is not."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.conf import lint as conf_lint
from tests.mistakes import CGROUP, CONF, GRES, MISTAKES, Mistake

GOOD = {
    CONF: """AuthType=auth/munge
ClusterName=c
ReturnToService=2
SelectType=select/cons_tres
SlurmctldHost=ctl(10.0.0.1)
NodeName=n1 NodeAddr=10.0.0.11 CPUs=4 RealMemory=1000
NodeName=n2 NodeAddr=10.0.0.12 CPUs=4 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=60
""",
    CGROUP: "ConstrainCores=yes\n",
}
NAMES = {"node": "n1", "other": "n2", "partition": "main", "missing": "n77", "busy": "n1", "taken": "2222"}
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "slurmctld"


def said(files: dict[str, str]) -> list[str]:
    return [str(finding) for finding in conf_lint.lint(files)]


@pytest.mark.parametrize(
    "mistake", [mistake for mistake in MISTAKES if mistake.by == "lint"], ids=lambda mistake: mistake.name
)
def test_a_mistake_is_found(mistake: Mistake) -> None:
    lines = said(mistake.files(GOOD, NAMES))

    assert any(mistake.expected(NAMES).search(line) for line in lines), lines


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "SlurmctldPort=6817-6818 SlurmdPort=6819",
        "NodeName=x[1-2] NodeAddr=10.0.0.[21-22] Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CPUs=16",
        "NodeName=x Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=1 CPUs=8",
        "NodeName=x[1-2] NodeAddr=10.0.0.9 Port=[7001-7002]",
        "GresTypes=gpu,core\nNodeName=x Gres=gpu:a:1,core:4",
        "PartitionName=p Nodes=n1 Default=no MaxTime=1-0 DefaultTime=24:00:00",
        "PartitionName=p Nodes=n1 MaxTime=INFINITE DefaultTime=5",
        "NodeSet=fast Feature=x\nPartitionName=p Nodes=fast,n1",
        "SlurmctldHost=other(10.0.0.2)",
    ],
)
def test_what_is_meant_is_no_mistake(lines: str) -> None:
    assert said({**GOOD, CONF: f"{GOOD[CONF]}{lines}\n"}) == []


def test_what_slurmstead_writes_is_no_mistake() -> None:
    files = {name: (GOLDEN / name).read_text() for name in (CONF, CGROUP, GRES)}

    assert said(files) == []
    assert conf_lint.warnings(files) == []


def test_a_node_in_no_partition_is_worth_a_word() -> None:
    files = {CONF: GOOD[CONF].replace("Nodes=ALL", "Nodes=n2")}

    assert [str(finding) for finding in conf_lint.warnings(files)] == [
        "slurm.conf: n1 is in no partition: no job can run there"
    ]


def test_the_table_has_each_mistake_once() -> None:
    names = [mistake.name for mistake in MISTAKES]

    assert len(names) == len(set(names)) >= 34
    assert {mistake.by for mistake in MISTAKES} == {"lint", "gate", "machine", "words", "plan"}


def test_a_worker_that_was_never_measured_is_explained() -> None:
    (found,) = conf_lint.lint({"slurm.conf": "NodeName=n1\nPartitionName=main Nodes=n[1-2]\n"})

    assert str(found).endswith(
        "n2 has no NodeName line; known nodes: n1; a new worker has none until a run has measured it, so switch it on"
    )
