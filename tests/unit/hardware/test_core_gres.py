"""Fast and slow cores as a GRES."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.hardware import core_gres, node_lines, slurmd_parameters

RK3588: dict[str, Any] = {
    **{"architecture": "aarch64", "cpus": 8, "sockets": 3, "cores_per_socket": 4, "threads_per_core": 1},
    **{"memory": 8000, "slow_cpus": "0-3", "fast_cores": 4, "slow_cores": 4, "slurm": "24.11"},
    "hwloc": {"packages": 3, "cores": 8, "pus": 8, "l3_caches": 0, "l3_cores": 0, "numa_parent": "Machine"},
}
PC: dict[str, Any] = {
    **{"cpus": 4, "sockets": 1, "cores_per_socket": 4, "threads_per_core": 1, "memory": 8000},
    "slurm": "24.11",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"slow": "0-3", "fast": "4-7"}),
        ({"slow_cpus": "4-7"}, {"fast": "0-3", "slow": "4-7"}),
        ({"slow_cpus": "0,2,4,6"}, {}),
        ({"slow_cpus": "0-5"}, {}),
        ({"slow_cpus": ""}, {}),
        ({"cpus": 7}, {}),
        ({"threads_per_core": 2}, {}),
        ({"core_types": {"core": "4-7", "atom": "0-3"}}, {}),
    ],
)
def test_kinds_are_offered_only_where_each_is_one_half(changed: dict[str, Any], expected: dict[str, str]) -> None:
    assert core_gres.halves({**RK3588, **changed}) == expected


def test_a_node_with_two_kinds_is_two_sockets() -> None:
    keys = node_lines.node_keys(RK3588, {}, by_kind=True)

    assert {key: keys[key] for key in ("SocketsPerBoard", "CoresPerSocket", "CPUs", "Gres")} == {
        "SocketsPerBoard": 2,
        "CoresPerSocket": 4,
        "CPUs": 8,
        "Gres": "core:slow:4,core:fast:4",
    }


def test_other_gres_of_the_node_stay() -> None:
    keys = node_lines.node_keys(RK3588, {"Gres": "gpu:1"}, by_kind=True)

    assert keys["Gres"] == "gpu:1,core:slow:4,core:fast:4"


@pytest.mark.parametrize(
    ("hardware", "declared", "by_kind"),
    [(RK3588, {}, False), (RK3588, {"CPUs": 6}, True), (RK3588, {"CoresPerSocket": 8}, True), (PC, {}, True)],
    ids=["not asked for", "CPUs declared", "an arrangement declared", "cores alike"],
)
def test_elsewhere_a_line_stays_as_it_is(hardware: dict[str, Any], declared: dict[str, Any], by_kind: bool) -> None:
    keys = node_lines.node_keys(hardware, declared, by_kind=by_kind)

    assert keys == node_lines.node_keys(hardware, declared)
    assert "Gres" not in keys


def test_gres_conf_names_the_cores_of_each_kind() -> None:
    lines = core_gres.gres_lines({"node1": RK3588, "node2": PC}, ["node1", "node2", "node9"]).splitlines()

    assert lines == [
        "NodeName=node1 Name=core Type=slow File=/sys/devices/system/cpu/cpu[0-3] Cores=0-3",
        "NodeName=node1 Name=core Type=fast File=/sys/devices/system/cpu/cpu[4-7] Cores=4-7",
    ]


@pytest.mark.parametrize(("slurm", "expected"), [("24.11", True), ("23.11", True), ("22.05", False), (None, False)])
def test_binding_is_enforced_where_every_slurm_can(slurm: str | None, expected: bool) -> None:
    assert core_gres.enforced({"node1": {**RK3588, "slurm": slurm}, "node2": PC}, ["node1", "node2"]) is expected


def test_slurm_believes_two_sockets_on_a_kernel_that_shows_one() -> None:
    mainline = {**RK3588, "sockets": 1, "cores_per_socket": 8}

    assert slurmd_parameters.slurmd_parameters({"node1": mainline}, ["node1"])[0] == []
    assert slurmd_parameters.slurmd_parameters({"node1": mainline}, ["node1"], by_kind=True)[0] == ["config_overrides"]
