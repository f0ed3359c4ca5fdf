"""What /sys, /proc and hwloc say is read as it is, and what is missing is no error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible.module_utils.slurmstead.hardware import hwloc, measure
from ansible.module_utils.slurmstead.hardware import record as hardware_record
from tests.machines import Machine, build, export, write

RK1 = Machine(
    "4 2 2", 7937, "aarch64", "turing,rk1 rockchip,rk3588", "4*414 2*1004 2*1024", numa="machine", l3="machine"
)


def test_nothing_at_all_is_no_error(tmp_path: Path) -> None:
    measured = measure.measure(tmp_path)

    assert {key: value for key, value in measured.items() if value} == {"cgroup": {"mode": None, "controllers": []}}


def test_a_machine_is_measured_from_its_files(tmp_path: Path) -> None:
    build(tmp_path, RK1)
    write(tmp_path, "proc/device-tree/model", "Turing Machines RK1\0")
    write(tmp_path, "sys/devices/system/node/node0/cpulist", "0-7\n")
    for cpu, cluster in enumerate("00001122"):
        write(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/topology/cluster_id", cluster)

    assert measure.measure(tmp_path) == {
        **{"cpus": 8, "sockets": 3, "cores": 8, "cores_per_socket": 4, "threads_per_core": 1, "clusters": 3},
        "numa_nodes": 1,
        "cpu_capacity": {"0-3": 414, "4-5": 1004, "6-7": 1024},
        "core_types": {},
        "fast_cores": 4,
        "slow_cores": 4,
        "slow_cpus": "0-3",
        "offline_cpus": "",
        "isolated_cpus": "",
        "memory": 7937,
        "board": "Turing Machines RK1",
        "compatible": ["turing,rk1", "rockchip,rk3588"],
        "cgroup": {"mode": None, "controllers": []},
        "disks": [],
    }


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        ([("0", "0"), ("0", "1")], (2, 1, 2, 1)),
        ([("0", "0,2"), ("0", "1,3"), ("0", "0,2"), ("0", "1,3")], (4, 1, 2, 2)),
        ([("0", "0-1"), ("0", "0-1")], (2, 1, 1, 2)),
        ([("0", "0,2"), ("0", "1"), ("0", "0,2")], (3, 1, 2, 2)),
        ([("-1", "0"), ("-1", "1")], (2, 1, 2, 1)),
    ],
    ids=["one package", "SMT", "SMT with neighbours as siblings", "a sibling is offline", "no packages"],
)
@pytest.mark.parametrize("siblings", ["core_cpus_list", "thread_siblings_list"])
def test_cpus_are_counted_as_they_are_arranged(
    tmp_path: Path, cpus: list[tuple[str, str]], expected: tuple[int, int, int, int], siblings: str
) -> None:
    for number, (package, core) in enumerate(cpus):
        topology = f"sys/devices/system/cpu/cpu{number}/topology"
        write(tmp_path, f"{topology}/physical_package_id", f"{package}\n")
        write(tmp_path, f"{topology}/{siblings}", f"{core}\n")
    write(tmp_path, "sys/devices/system/cpu/cpu9/uevent", "")

    found = measure.arrangement(measure.cpus(tmp_path))

    assert tuple(found[key] for key in ("cpus", "sockets", "cores_per_socket", "threads_per_core")) == expected


def test_cpus_without_topology_are_cores_of_one_package(tmp_path: Path) -> None:
    write(tmp_path, "sys/devices/system/cpu/online", "0-3\n")

    found = measure.arrangement(measure.cpus(tmp_path))

    assert (found["cpus"], found["sockets"], found["cores_per_socket"]) == (4, 1, 4)


def test_offline_cpus_are_those_that_are_present(tmp_path: Path) -> None:
    for name, cpus in {"present": "0-7", "online": "0-5", "offline": "6-63", "isolated": "4-5"}.items():
        write(tmp_path, f"sys/devices/system/cpu/{name}", f"{cpus}\n")

    measured = measure.measure(tmp_path)

    assert (measured["offline_cpus"], measured["isolated_cpus"]) == ("6-7", "4-5")


V1 = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
UNIFIED = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
ELSEWHERE = "cgroup /var/lib/machines/x/sys/fs/cgroup/cpu cgroup rw 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "mode", "controllers"),
    [
        (V2 + ELSEWHERE, "v2", ["cpu", "memory"]),
        (V1, "v1", ["cpuset"]),
        (V1 + UNIFIED, "hybrid", ["cpuset"]),
        ("", None, ["cpuset"]),
    ],
)
def test_the_mode_of_control_groups_is_that_of_the_mounts(
    tmp_path: Path, mounts: str, mode: str | None, controllers: list[str]
) -> None:
    write(tmp_path, "proc/self/mounts", f"tmpfs /sys/fs/cgroup tmpfs rw 0 0\n{mounts}")
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", "memory cpu\n")
    write(tmp_path, "proc/cgroups", "#subsys_name hierarchy num_cgroups enabled\ncpuset 3 4 1\nmemory 4 30 0\n")

    assert measure.cgroup(tmp_path) == {"mode": mode, "controllers": controllers}


def test_disks_are_those_of_the_machine(tmp_path: Path) -> None:
    for name in ("sda", "nvme0n1", "mmcblk0", "mmcblk0boot0", "loop0", "zram0", "sr0", "dm-0", "md0"):
        write(tmp_path, f"sys/block/{name}/size", "2048\n")
    write(tmp_path, "sys/block/sdb/size", "0\n")
    write(tmp_path, "sys/block/sda/device/model", "CT1000MX500SSD1 \n")
    write(tmp_path, "sys/block/mmcblk0/device/name", "BJTD4R\n")
    by_id = tmp_path / "dev/disk/by-id"
    by_id.mkdir(parents=True)
    for link in ("wwn-0x500a", "ata-CT1000MX500SSD1_21", "lvm-pv-uuid-a"):
        (by_id / link).symlink_to("../../sda")

    assert measure.disks(tmp_path) == [
        {"name": "mmcblk0", "id": None, "size": 1048576, "model": "BJTD4R"},
        {"name": "nvme0n1", "id": None, "size": 1048576, "model": None},
        {"name": "sda", "id": "ata-CT1000MX500SSD1_21", "size": 1048576, "model": "CT1000MX500SSD1"},
    ]


@pytest.mark.parametrize(
    ("stdout", "expected"),
    [
        (
            "NodeName=a CPUs=8 Boards=1 SocketsPerBoard=3 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=7937\nUpTime",
            {
                "CPUs": 8,
                "Boards": 1,
                "SocketsPerBoard": 3,
                "CoresPerSocket": 2,
                "ThreadsPerCore": 1,
                "RealMemory": 7937,
            },
        ),
        ("warning: x\nNodeName=a CPUs=2 Gres=gpu:1 Parameters=a CoresPerSocket=x2\n", {"CPUs": 2}),
        ("NodeName=a\n", {}),
        ("", None),
    ],
)
def test_only_the_numbers_of_slurmd_are_taken(stdout: str, expected: dict[str, int] | None) -> None:
    assert measure.slurmd_says(stdout) == expected


def test_hwloc_is_read_from_its_xml() -> None:
    assert hwloc.counts(export(RK1)) == {
        **{"packages": 3, "groups": 0, "l3_caches": 1, "l3_cores": 8, "numa_nodes": 1, "cores": 8, "pus": 8},
        "numa_parent": "L3Cache",
    }


@pytest.mark.parametrize(
    ("machine", "parent"),
    [
        (Machine("8", 1), "Package"),
        (Machine("4 2 2", 1, numa="machine"), "Machine"),
        (Machine("8", 1, clusters=(4, 2, 2)), "Package"),
        (Machine("8", 1, nameless=True, clusters=(4, 2, 2)), "Machine"),
        (Machine("8", 1, numa=4), "Group"),
    ],
)
def test_the_parent_of_the_first_numa_node_is_found(machine: Machine, parent: str) -> None:
    counts = hwloc.counts(export(machine))

    assert counts is not None
    assert counts["numa_parent"] == parent


def test_a_missing_library_or_broken_xml_is_no_error() -> None:
    assert hwloc.look("libhwloc.so.none") is None
    assert hwloc.counts("<topology>") is None


def test_a_machine_without_numa_nodes_has_no_parent_of_one() -> None:
    counts = hwloc.counts('<topology><object type="Machine"/></topology>')

    assert counts is not None
    assert counts["numa_parent"] is None


MEASURED: dict[str, Any] = {
    "cpus": 8,
    "memory": 7900,
    "slurm": "22.05.8",
    "cgroup": {"mode": "v2"},
    "cpu_capacity": {"0-7": 1024},
    "hwloc": {"pus": 8},
    "disks": [
        {"name": "sdb", "id": "ata-B", "size": 2, "model": None},
        {"name": "sda", "id": "ata-A", "size": 1, "model": "A"},
        {"name": "vda", "id": None, "size": 3, "model": None},
    ],
}


def test_what_differs_between_boots_is_not_remembered() -> None:
    assert hardware_record.remembered({"memory": 7937}, MEASURED) == {
        "cpus": 8,
        "memory": 7937,
        "slurm": "22.05",
        "hwloc": {"pus": 8},
        "disks": [
            {"id": "ata-A", "size": 1, "model": "A"},
            {"id": "ata-B", "size": 2, "model": None},
            {"name": "vda", "id": None, "size": 3, "model": None},
        ],
    }


def test_a_version_is_not_forgotten_where_slurm_is_not_installed_yet() -> None:
    assert hardware_record.remembered({"slurm": "22.05"}, MEASURED | {"slurm": None})["slurm"] == "22.05"


def test_changes_are_told_with_key_before_and_after() -> None:
    known = {"cpus": 8, "memory": 7937, "hwloc": {"pus": 8}, "disks": [{"id": "ata-A"}, {"name": "vda", "id": None}]}
    new = {"cpus": 6, "memory": 3900, "hwloc": {"pus": 6}, "disks": [{"id": "ata-B"}, {"id": "ata-A"}], "cores": 6}

    assert list(hardware_record.changes(known, new)) == [
        "cpus 8 -> 6",
        "disk vda is gone",
        "disk ata-B is new",
        "hwloc pus 8 -> 6",
        "memory 7937 MiB -> 3900 MiB",
    ]


@pytest.mark.parametrize(
    ("known", "new", "expected"),
    [
        ({"cpus": 8}, {"cpus": 6}, True),
        ({"memory": 8}, {"memory": 6}, True),
        ({"disks": [{"id": "a"}]}, {"disks": []}, True),
        ({"sockets": 3}, {"sockets": 1}, False),
        ({"cpus": 6}, {"cpus": 8}, False),
        ({"cpus": 6}, {"cpus": None}, False),
        ({}, {"cpus": 8, "disks": [{"id": "a"}]}, False),
    ],
)
def test_a_node_with_less_has_shrunk(known: dict[str, Any], new: dict[str, Any], expected: bool) -> None:
    assert hardware_record.has_shrunk(known, new) is expected
