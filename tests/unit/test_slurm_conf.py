"""Lines of slurm.conf: what was measured, what a person declares, and where the two cannot meet."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead import slurm_conf

RK1 = {"cpus": 8, "sockets": 3, "cores_per_socket": 4, "threads_per_core": 1, "memory": 7937}
"""Turing RK1 with 8 GiB as its vendor's kernel shows it: four slow cores, two and two fast ones, each in a package."""
SERVER = {"cpus": 32, "sockets": 2, "cores_per_socket": 8, "threads_per_core": 2, "memory": 64000}
VM = {"cpus": 2, "sockets": 1, "cores_per_socket": 2, "threads_per_core": 1, "memory": 977}


def line(hardware: dict[str, Any], declared: dict[str, Any] | None = None) -> str:
    """The arrangement and the memory of a node's line, in short."""
    keys = slurm_conf.without_null(slurm_conf.node_keys(hardware, declared or {}))
    sockets = f"{keys['Sockets']} in all" if "Sockets" in keys else f"{keys['Boards']}x{keys['SocketsPerBoard']}"
    cpus = keys.get("CPUs", "their")
    return f"{cpus} CPUs: {sockets} sockets x {keys['CoresPerSocket']} x {keys['ThreadsPerCore']}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("slurm", "Key=slurm"),
        (8, "Key=8"),
        (0.5, "Key=0.5"),
        (True, "Key=YES"),
        (False, "Key=NO"),
        (["arm64", "rk3588"], "Key=arm64,rk3588"),
        ("low on memory", 'Key="low on memory"'),
    ],
)
def test_a_value_is_written_as_slurm_reads_it(value: Any, text: str) -> None:
    assert slurm_conf.key_value("Key", value) == text


def test_keys_are_sorted_and_null_leaves_one_out() -> None:
    values = {"SlurmUser": "slurm", "Epilog": None, "AuthType": "auth/munge", "MaxJobCount": 0}

    assert slurm_conf.slurm_keys(values).splitlines() == ["AuthType=auth/munge", "MaxJobCount=0", "SlurmUser=slurm"]


def test_sections_are_sorted_but_the_default_is_first() -> None:
    sections = {"main": {"Nodes": "ALL"}, "Big": {"Nodes": "node1", "MaxTime": None}, "DEFAULT": {"State": "UP"}}

    assert slurm_conf.slurm_lines(sections, "PartitionName").splitlines() == [
        "PartitionName=DEFAULT State=UP",
        "PartitionName=Big Nodes=node1",
        "PartitionName=main Nodes=ALL",
    ]


def test_a_section_may_be_empty() -> None:
    assert slurm_conf.slurm_lines({"main": None}, "PartitionName") == "PartitionName=main"


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        (VM, "2 CPUs: 1x1 sockets x 2 x 1"),
        (SERVER, "32 CPUs: 1x2 sockets x 8 x 2"),
        (RK1, "8 CPUs: 1x1 sockets x 8 x 1"),
        (SERVER | {"cpus": 31}, "31 CPUs: 1x1 sockets x 31 x 1"),
    ],
    ids=["one package", "two packages with SMT", "unequal packages", "one CPU is offline"],
)
def test_no_cpu_is_lost_to_the_arrangement(hardware: dict[str, Any], expected: str) -> None:
    assert line(hardware) == expected


@pytest.mark.parametrize(
    ("hardware", "declared", "expected"),
    [
        (SERVER, {"CPUs": 16}, "16 CPUs: 1x2 sockets x 8 x 2"),
        (SERVER, {"CPUs": 2}, "2 CPUs: 1x2 sockets x 8 x 2"),
        (SERVER, {"CPUs": 6}, "6 CPUs: 1x1 sockets x 6 x 1"),
        (RK1, {"CPUs": 4}, "4 CPUs: 1x1 sockets x 4 x 1"),
        (SERVER, {"ThreadsPerCore": 1}, "their CPUs: 1x2 sockets x 8 x 1"),
        (RK1, {"ThreadsPerCore": 1}, "their CPUs: 1x1 sockets x 8 x 1"),
        (SERVER, {"Sockets": 4, "CoresPerSocket": 4}, "their CPUs: 4 in all sockets x 4 x 2"),
        (RK1, {"SocketsPerBoard": 4, "CoresPerSocket": 2}, "their CPUs: 1x4 sockets x 2 x 1"),
        (RK1, {"SocketsPerBoard": 4, "CoresPerSocket": 2, "CPUs": 8}, "8 CPUs: 1x4 sockets x 2 x 1"),
        (SERVER, {"CPUs": None}, "their CPUs: 1x2 sockets x 8 x 2"),
    ],
    ids=str,
)
def test_a_declared_arrangement_wins_and_stays_one_that_slurm_accepts(
    hardware: dict[str, Any], declared: dict[str, Any], expected: str
) -> None:
    assert line(hardware, declared) == expected


def test_jobs_may_use_a_little_less_memory_than_was_measured() -> None:
    assert slurm_conf.node_keys(VM, {})["RealMemory"] == 928


@pytest.mark.parametrize("memory", [1, 977, "977"])
def test_less_memory_can_be_declared(memory: Any) -> None:
    assert slurm_conf.node_keys(VM, {"RealMemory": memory})["RealMemory"] == memory


@pytest.mark.parametrize("function", [slurm_conf.node_lines, slurm_conf.memory_per_cpu], ids=lambda one: one.__name__)
def test_more_memory_than_there_is_names_the_node_and_both_values(function: Any) -> None:
    with pytest.raises(slurm_conf.NodeError) as refused:
        function({"node1": VM}, {"node1": "10.0.0.1"}, {"node1": {"RealMemory": 978}})

    assert str(refused.value) == (
        "slurm_nodes: node1: RealMemory=978 is declared, but the node has 977 MiB; declare less, or nothing"
    )


def test_each_measured_node_has_a_line_with_what_was_declared() -> None:
    addresses = {"node2": "10.0.0.2", "node1": "10.0.0.1"}
    declared = {"node1": {"Features": ["arm64", "rk3588"], "Boards": None}, "node2": None}

    lines = slurm_conf.node_lines({"node1": RK1, "node2": VM}, addresses, declared).splitlines()

    assert lines == [
        "NodeName=node1 CPUs=8 CoresPerSocket=8 Features=arm64,rk3588 NodeAddr=10.0.0.1 RealMemory=7540 "
        "SocketsPerBoard=1 ThreadsPerCore=1",
        "NodeName=node2 Boards=1 CPUs=2 CoresPerSocket=2 NodeAddr=10.0.0.2 RealMemory=928 SocketsPerBoard=1 "
        "ThreadsPerCore=1",
    ]


def test_a_node_that_was_never_measured_needs_cpus_and_memory_of_its_own() -> None:
    addresses = {"node1": "10.0.0.1", "node2": "10.0.0.2", "node3": "10.0.0.3"}
    declared = {"node1": {"CPUs": 4, "RealMemory": 1000}, "node2": {"CPUs": 4}}

    lines = slurm_conf.node_lines({}, addresses, declared)

    assert lines == "NodeName=node1 CPUs=4 NodeAddr=10.0.0.1 RealMemory=1000"


@pytest.mark.parametrize(
    ("hardware", "declared", "expected"),
    [
        ({"a": VM}, {}, 464),
        ({"a": VM, "b": RK1}, {}, 464),
        ({"a": SERVER, "b": RK1}, {}, 942),
        ({"a": VM}, {"a": {"RealMemory": 500}}, 250),
        ({"a": VM}, {"a": {"RealMemory": 1}}, 1),
        ({"a": SERVER}, {"a": {"ThreadsPerCore": 1}}, 3800),
        ({"a": SERVER}, {"a": {"CPUs": None}}, 1900),
        ({"a": SERVER}, {"a": {"RealMemory": None}}, None),
        ({"a": SERVER}, {"b": {"CPUs": 4, "RealMemory": "400"}}, 100),
        ({}, {}, None),
    ],
    ids=str,
)
def test_a_cpu_comes_with_the_least_memory_that_any_node_has_for_one(
    hardware: dict[str, Any], declared: dict[str, Any], expected: int | None
) -> None:
    assert slurm_conf.memory_per_cpu(hardware, {"a": "10.0.0.1", "b": "10.0.0.2"}, declared) == expected
