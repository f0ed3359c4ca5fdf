"""SlurmdParameters of clusters whose nodes are not alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible.module_utils.slurmstead.hardware.slurmd_parameters import slurmd_parameters
from tests.machines import Machine, measure

UNEVEN = Machine("4 2 2", 7937, numa="machine")
UNEVEN_L3 = Machine("4 2 2", 7937, numa="machine", l3="machine")
UNEVEN_ONLY_L3 = Machine("4 2 2", 7937, numa=1, l3="machine")
PC = Machine("6x2", 15872, l3="package")
TWO_SOCKETS = Machine("8x2 8x2", 64000, l3="package")
INTERLEAVED = Machine("8x2 8x2", 64000, numa="machine", l3="package")
NPS4 = Machine("64x2", 515000, numa=4, l3=8)
NO_HWLOC = Machine("4", 4000, hwloc=False)
TWO_SOCKETS_NO_HWLOC = Machine("4 4", 4000, hwloc=False)

NUMA = "config_overrides,numa_node_as_socket"
L3 = "config_overrides,l3cache_as_socket"

Cluster = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Measure machines as node0, node1 and so on."""

    def make(machines: list[Machine], versions: list[str | None] | None = None) -> dict[str, dict[str, Any]]:
        pairs = enumerate(zip(machines, versions or ["24.11"] * len(machines), strict=True))
        return {f"node{n}": measure(tmp_path / str(n), machine, version) for n, (machine, version) in pairs}

    return make


@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        ([PC], ""),
        ([NPS4], ""),
        ([UNEVEN, PC], NUMA),
        ([UNEVEN, TWO_SOCKETS], NUMA),
        ([UNEVEN, NO_HWLOC], NUMA),
        ([UNEVEN_L3, NPS4], "config_overrides"),
        ([UNEVEN_L3, INTERLEAVED], L3),
        ([UNEVEN_ONLY_L3, PC], L3),
        ([UNEVEN, INTERLEAVED], "config_overrides"),
        ([UNEVEN, NPS4], "config_overrides"),
        ([UNEVEN, TWO_SOCKETS_NO_HWLOC], "config_overrides"),
        ([UNEVEN, UNEVEN_ONLY_L3], "config_overrides"),
        ([], ""),
    ],
)
def test_a_word_that_would_change_another_node_is_left_out_with_a_warning(
    cluster: Cluster, machines: list[Machine], expected: str
) -> None:
    nodes = cluster(machines)

    words, warnings = slurmd_parameters(nodes, nodes)

    assert ",".join(words) == expected
    assert len(warnings) == (expected == "config_overrides")


def test_the_warning_names_the_nodes_and_what_to_do(cluster: Cluster) -> None:
    nodes = cluster([UNEVEN, NPS4, PC])

    assert slurmd_parameters(nodes, nodes)[1] == [
        "node0: task/affinity would bind jobs to wrong CPUs, because packages differ in size; "
        "SlurmdParameters=numa_node_as_socket would fix it, but change the sockets of node1. "
        "Set TaskPlugin: task/cgroup in slurm_config, or SlurmdParameters if you know better."
    ]


def test_a_slurmd_that_does_not_know_a_word_is_not_changed_by_it(cluster: Cluster) -> None:
    nodes = cluster([UNEVEN, NPS4], ["22.05", "21.08"])

    assert slurmd_parameters(nodes, nodes) == (["config_overrides", "numa_node_as_socket"], [])


def test_an_older_slurmd_binds_rightly_and_needs_no_warning(cluster: Cluster) -> None:
    nodes = cluster([UNEVEN, NPS4], ["22.05", "22.05"])

    assert slurmd_parameters(nodes, nodes) == (["config_overrides"], [])


def test_a_node_of_unknown_version_counts_as_new(cluster: Cluster) -> None:
    nodes = cluster([UNEVEN], [None])

    assert slurmd_parameters(nodes, nodes)[0] == ["config_overrides", "numa_node_as_socket"]


@pytest.mark.parametrize(("machine", "insisted"), [(PC, True), (UNEVEN, False)])
def test_a_person_can_insist(cluster: Cluster, machine: Machine, insisted: bool) -> None:
    nodes = cluster([machine])

    words, _ = slurmd_parameters(nodes, nodes, insisted)

    assert ("config_overrides" in words) is insisted


def test_nodes_that_were_never_measured_or_by_an_older_version_do_no_harm() -> None:
    old = {"cpus": 8, "sockets": 3, "cores_per_socket": 4, "threads_per_core": 1, "memory": 7937}

    words, warnings = slurmd_parameters({"a": old, "b": {"cpus": None}}, ["a", "b", "c"])

    assert words == ["config_overrides"]
    assert "hwloc shows no object" in warnings[0]
