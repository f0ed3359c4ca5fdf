"""What a person is told of a worker: what was measured, declared and remembered, and where these differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible.module_utils.slurmstead.hardware import record as hardware_record
from ansible.module_utils.slurmstead.hardware.report import cluster_report, measured_on, node_report
from tests.machines import Machine, measure

PC = Machine("6x2", 15872, l3="package")
UNEVEN = Machine("4 2 2", 7937, "aarch64", numa="machine")
HYBRID = Machine("8x2+4", 31900, types={"core": "0-15", "atom": "16-19"})
SLURMD = {"CPUs": 12, "Boards": 1, "SocketsPerBoard": 1, "CoresPerSocket": 6, "ThreadsPerCore": 2, "RealMemory": 15872}


def notes(
    tmp_path: Path, machine: Machine, declared: dict[str, Any] | None = None, *, known: Any = None, **more: Any
) -> list[str]:
    """The notes of a worker that has Slurm 24.11; those that a person should look at begin with a !."""
    hardware = measure(tmp_path, machine, "24.11.5") | more
    remembered = hardware_record.remembered({}, hardware) if known is None else known
    report = node_report("a", "10.0.0.1", hardware, declared or {}, remembered)
    return ["!" * note["look"] + note["text"] for note in report["notes"]]


@pytest.mark.parametrize(
    ("machine", "more", "expected"),
    [
        (PC, {}, []),
        (PC, {"slurmd": SLURMD, "cgroup": {"mode": "v2"}}, []),
        (PC, {"declared": {"Weight": 10}}, []),
        (PC, {"declared": {"CPUs": 6}}, ["CPUs=6 is declared of 12"]),
        (
            PC,
            {"declared": {"CPUs": 13}},
            ["!slurm_nodes: CPUs=13 is declared, but the node has 12 CPUs; declare less, or nothing"],
        ),
        (
            PC,
            {"slurmd": SLURMD | {"CPUs": 8}},
            ["!slurmd -C sees 8 CPUs, slurm.conf will say 12: declare CPUs=8"],
        ),
        (
            PC,
            {"slurmd": SLURMD | {"RealMemory": 15000}},
            ["!slurmd -C sees 15000 MiB, slurm.conf will say 15078: declare less RealMemory"],
        ),
        (PC, {"slurmd": SLURMD | {"Boards": 3, "SocketsPerBoard": 0}}, []),
        (
            PC,
            {"cgroup": {"mode": "hybrid"}},
            ["!both cgroup versions are mounted, which cgroup/v2 of slurmd 24.11.5 refuses"],
        ),
        (
            PC,
            {"cgroup": {"mode": "v2"}, "slurm": "21.08.5"},
            ["!the machine uses cgroup version 2, which slurmd 21.08.5 does not support: boot with version 1"],
        ),
        (PC, {"cgroup": {"mode": "v1"}, "slurm": "21.08.5"}, []),
        (PC, {"slurm": None}, ["slurmd is not installed"]),
        (PC, {"known": {}}, ["not recorded yet; site.yml will measure and record it"]),
        (
            PC,
            {"known": {"cpus": 16, "memory": 15900}},
            ["!cpus 16 -> 12 since site.yml measured it: run it again, or fix the machine"],
        ),
        (PC, {"cpus": None}, ["!neither its CPUs nor its memory could be read"]),
        (
            UNEVEN,
            {"slurmd": {"CPUs": 8, "SocketsPerBoard": 3, "CoresPerSocket": 2}},
            [
                "slurmd -C reports 3 x 2 x 1, which does not make its 8 CPUs",
                "packages or cores differ in size: one socket holds all CPUs",
            ],
        ),
        (
            HYBRID,
            {},
            [
                "slurmd ignores the slow cores, CPUs 16-19; to use them, set CPUs=20 in slurm_nodes and "
                "allow_ecores in SlurmdParameters"
            ],
        ),
        (
            Machine("4", 4000, offline="3", isolated="1-2"),
            {},
            ["CPUs 3 are switched off", "CPUs 1-2 are isolated; Slurm gives them to jobs"],
        ),
    ],
    ids=str,
)
def test_a_person_is_told_what_differs(
    tmp_path: Path, machine: Machine, more: dict[str, Any], expected: list[str]
) -> None:
    assert notes(tmp_path, machine, **more) == expected


def test_measured_declared_and_slurm_conf_stand_side_by_side(tmp_path: Path) -> None:
    hardware = measure(tmp_path, PC, "24.11")

    report = node_report("a", "10.0.0.1", hardware, {"Feature": "gpu", "RealMemory": 15000, "Weight": 10}, {})

    assert [(row["key"], row["measured"], row["declared"], row["slurm_conf"]) for row in report["rows"]] == [
        ("CPUs", "12", None, "12"),
        ("SocketsPerBoard", "1", None, "1"),
        ("CoresPerSocket", "6", None, "6"),
        ("ThreadsPerCore", "2", None, "2"),
        ("RealMemory", "15872", "15000", "15000"),
        ("Features", "amd64", "gpu", "amd64,gpu"),
        ("Weight", None, "10", "10"),
    ]
    assert report["line"] == (
        "NodeName=a Boards=1 CPUs=12 CoresPerSocket=6 Features=amd64,gpu NodeAddr=10.0.0.1 RealMemory=15000 "
        "SocketsPerBoard=1 ThreadsPerCore=2 Weight=10"
    )


@pytest.mark.parametrize(
    ("config", "parameters", "warned"),
    [
        ({}, "config_overrides", True),
        ({"TaskPlugin": "task/cgroup"}, "config_overrides", False),
        ({"SlurmdParameters": "l3cache_as_socket"}, "l3cache_as_socket", False),
    ],
)
def test_what_a_person_sets_wins_and_silences_the_warning(
    tmp_path: Path, config: dict[str, str], parameters: str, warned: bool
) -> None:
    nodes = {"a": measure(tmp_path / "a", UNEVEN, "24.11")}
    off = {"b": measure(tmp_path / "b", Machine("8x2 8x2", 1000, numa="machine"), "24.11")}

    report = cluster_report(nodes, off, {"a": "10.0.0.1", "b": "10.0.0.2"}, {"a": None}, config, None)

    assert report["nodes"].keys() == {"a"}
    assert report["parameters"] == parameters
    assert [note["look"] for note in report["notes"]] == [True] * warned


def test_nodes_that_did_not_answer_are_left_out() -> None:
    hostvars: dict[str, Any] = {"a": {"seen": {"hardware": {"cpus": 1}}}, "b": {"seen": {"unreachable": True}}, "c": {}}

    assert measured_on(["a", "b", "c"], hostvars, "seen") == {"a": {"cpus": 1}}
