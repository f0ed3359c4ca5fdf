"""Lines of slurm.conf: what was measured, what a person declares, and where the two cannot meet."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.conf import text as conf_text
from ansible.module_utils.slurmstead.hardware import node_lines

RK1 = {"cpus": 8, "sockets": 3, "cores_per_socket": 4, "threads_per_core": 1, "memory": 7937}
"""Turing RK1 with 8 GiB as its vendor's kernel shows it: four slow cores, two and two fast ones, each in a package."""
SERVER = {"cpus": 32, "sockets": 2, "cores_per_socket": 8, "threads_per_core": 2, "memory": 64000}
VM = {"cpus": 2, "sockets": 1, "cores_per_socket": 2, "threads_per_core": 1, "memory": 977}


def line(hardware: dict[str, Any], declared: dict[str, Any] | None = None) -> str:
    """The arrangement and the memory of a node's line, in short."""
    keys = conf_text.without_null(node_lines.node_keys(hardware, declared or {}))
    sockets = f"{keys['Sockets']} in all" if "Sockets" in keys else f"{keys['Boards']}x{keys['SocketsPerBoard']}"
    cpus = keys.get("CPUs", "their")
    return f"{cpus} CPUs: {sockets} sockets x {keys['CoresPerSocket']} x {keys['ThreadsPerCore']}"


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


@pytest.mark.parametrize(
    ("hardware", "declared", "refusal"),
    [
        (RK1, {"CPUs": 16}, "CPUs=16 is declared, but the node has 8 CPUs; declare less, or nothing"),
        (RK1, {"Procs": 16}, "CPUs=16 is declared, but the node has 8 CPUs; declare less, or nothing"),
        (
            RK1,
            {"SocketsPerBoard": 3, "CoresPerSocket": 3},
            "SocketsPerBoard=3 CoresPerSocket=3 ThreadsPerCore=1 is declared, which makes 9 CPUs, but the node has 8; "
            "declare less, or nothing",
        ),
        (
            SERVER,
            {"Sockets": 4},
            "Sockets=4 CoresPerSocket=8 ThreadsPerCore=2 is declared, which makes 64 CPUs, but the node has 32; "
            "declare less, or nothing",
        ),
        (
            SERVER,
            {"Boards": 2},
            "Boards=2 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=2 is declared, which makes 64 CPUs, but the "
            "node has 32; declare less, or nothing",
        ),
        (
            RK1,
            {"CPUs": 8, "SocketsPerBoard": 3, "CoresPerSocket": 2},
            "CPUs=8 is declared, but SocketsPerBoard=3 CoresPerSocket=2 ThreadsPerCore=1 makes 6 CPUs; "
            "declare one of them, or equal numbers",
        ),
        (RK1, {"CPUs": "many"}, "CPUs=many is declared; write a whole number from 1 on"),
        (RK1, {"CoresPerSocket": 0}, "CoresPerSocket=0 is declared; write a whole number from 1 on"),
        (
            RK1,
            {"CoreSpecCount": 8},
            "CoreSpecCount=8 (slurm_system_cores) keeps all 8 cores for the system; declare less",
        ),
        (SERVER, {"CoreSpecCount": 16}, "CoreSpecCount=16 (slurm_system_cores) keeps all 16 cores for the system"),
        (RK1, {"CoreSpecCount": -1}, "CoreSpecCount=-1 is declared; write a whole number from 1 on"),
        (RK1, {"RealMemory": "UNLIMITED"}, "RealMemory=UNLIMITED is declared; write a whole number from 1 on"),
        (RK1, {"Features": "a&b"}, "the feature 'a&b' is declared; use letters, digits and . _ : = + - only"),
        (RK1, {"Features": ["low power"]}, "the feature 'low power' is declared; use letters, digits and . _ : = + -"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_with_both_values(
    hardware: dict[str, Any], declared: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(node_lines.NodeError) as refused:
        node_lines.node_keys(hardware, declared)

    assert str(refused.value).startswith(refusal)


@pytest.mark.parametrize(
    "declared", [{"CPUs": 32}, {"CPUs": 16, "SocketsPerBoard": 2}, {"CPUs": 32, "Sockets": 2}], ids=str
)
def test_cpus_that_agree_with_the_arrangement_are_accepted(declared: dict[str, Any]) -> None:
    assert node_lines.node_keys(SERVER, declared)["CPUs"] == declared["CPUs"]


@pytest.mark.parametrize("cores", [None, 0, 1, 15])
def test_all_cores_but_one_can_be_kept_for_the_system(cores: int | None) -> None:
    assert node_lines.node_keys(SERVER, {"CoreSpecCount": cores})["CoreSpecCount"] == cores


BOARD = RK1 | {
    "architecture": "aarch64",
    "compatible": ["turing,rk1", "rockchip,rk3588"],
    "fast_cores": 4,
    "slow_cores": 4,
}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, ["arm64", "rk3588", "big4", "little4"]),
        ({"Features": ["nvme", "arm64"]}, ["arm64", "rk3588", "big4", "little4", "nvme"]),
        ({"Feature": "nvme, fast"}, ["arm64", "rk3588", "big4", "little4", "nvme", "fast"]),
        ({"Features": []}, ["arm64", "rk3588", "big4", "little4"]),
        ({"Features": None}, None),
    ],
    ids=str,
)
def test_declared_features_are_added_to_the_measured_ones(declared: dict[str, Any], expected: list[str] | None) -> None:
    assert node_lines.node_keys(BOARD, declared)["Features"] == expected


def test_a_name_in_the_device_tree_that_jobs_cannot_write_is_no_feature() -> None:
    assert node_lines.node_keys(BOARD | {"compatible": ["acme,a|b"]}, {})["Features"] == ["arm64", "big4", "little4"]


def test_an_alias_does_not_stand_beside_its_key() -> None:
    keys = node_lines.node_keys(BOARD, {"Procs": 4, "Feature": "a", "Weight": 10})

    assert (keys["CPUs"], keys["Weight"]) == (4, 10)
    assert not {"Procs", "Feature"} & keys.keys()


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [(RK1, True), (VM, False), (SERVER, False), (SERVER | {"cpus": 31}, True)],
)
def test_a_node_is_asymmetric_if_no_arrangement_makes_its_cpus(hardware: dict[str, Any], expected: bool) -> None:
    assert node_lines.is_asymmetric(hardware) is expected


@pytest.mark.parametrize(("version", "cpus"), [("22.05", 20), ("23.11", 16), (None, 16)])
def test_slow_cores_that_slurmd_leaves_out_can_be_declared(version: str | None, cpus: int) -> None:
    types = {"core": "0-15", "atom": "16-19"}
    pc = VM | {"cpus": 20, "cores_per_socket": 12, "threads_per_core": 2, "core_types": types, "fast_cores": 8}

    assert node_lines.node_keys(pc, {}, version)["CPUs"] == cpus
    assert node_lines.node_keys(pc, {"CPUs": 20}, version)["CPUs"] == 20


def test_jobs_may_use_a_little_less_memory_than_was_measured() -> None:
    assert node_lines.node_keys(VM, {})["RealMemory"] == 928


@pytest.mark.parametrize("memory", [1, 977, "977"])
def test_less_memory_can_be_declared(memory: Any) -> None:
    assert node_lines.node_keys(VM, {"RealMemory": memory})["RealMemory"] == memory


@pytest.mark.parametrize("function", [node_lines.node_lines, node_lines.memory_per_cpu], ids=lambda one: one.__name__)
def test_more_memory_than_there_is_names_the_node_and_both_values(function: Any) -> None:
    with pytest.raises(node_lines.NodeError) as refused:
        function({"node1": VM}, {"node1": "10.0.0.1"}, {"node1": {"RealMemory": 978}})

    assert str(refused.value) == (
        "slurm_nodes: node1: RealMemory=978 is declared, but the node has 977 MiB; declare less, or nothing"
    )


def test_each_measured_node_has_a_line_with_what_was_declared() -> None:
    addresses = {"node2": "10.0.0.2", "node1": "10.0.0.1"}
    declared = {"node1": {"Features": ["arm64", "rk3588"], "Boards": None}, "node2": None}

    lines = node_lines.node_lines({"node1": RK1, "node2": VM}, addresses, declared).splitlines()

    assert lines == [
        "NodeName=node1 CPUs=8 CoresPerSocket=8 Features=arm64,rk3588 NodeAddr=10.0.0.1 RealMemory=7540 "
        "SocketsPerBoard=1 ThreadsPerCore=1",
        "NodeName=node2 Boards=1 CPUs=2 CoresPerSocket=2 NodeAddr=10.0.0.2 RealMemory=928 SocketsPerBoard=1 "
        "ThreadsPerCore=1",
    ]


def test_a_node_of_which_too_little_was_measured_has_no_line() -> None:
    assert node_lines.node_lines({"node1": {"cpus": None, "memory": 1}}, {"node1": "10.0.0.1"}, {}) == ""


def test_a_node_that_was_never_measured_needs_cpus_and_memory_of_its_own() -> None:
    addresses = {"node1": "10.0.0.1", "node2": "10.0.0.2", "node3": "10.0.0.3"}
    declared = {"node1": {"CPUs": 4, "RealMemory": 1000}, "node2": {"CPUs": 4}}

    lines = node_lines.node_lines({}, addresses, declared)

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
    assert node_lines.memory_per_cpu(hardware, {"a": "10.0.0.1", "b": "10.0.0.2"}, declared) == expected
