"""What a task in an image gets, and what of slurmstepd's file is left out."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.sandbox import bundle

TASK = bundle.Task(
    uid=2001,
    gid=2002,
    home="/share/home/alice",
    own="/scratch/job-7/.sandbox/task-x",
    scratch="/scratch/job-7",
    paths=["/share/home/alice"],
    network=False,
    resolver=["/etc/hosts"],
    processes=100,
    host="node1",
    script="/spool/slurm_script",
)
GIVEN = {
    "process": {"args": ["id"], "env": ["PATH=/image", "A=b=c", "SLURM_CONF=/x", "PATH=/user", "HOME=/", "BARE"]},
    "root": {"path": "/elsewhere"},
    "hooks": {"prestart": [{"path": "/evil"}]},
    "mounts": [
        {"destination": bundle.STARTUP, "source": "/", "options": ["bind", "suid"]},
        {"destination": "/etc", "source": "/etc"},
        {"options": []},
    ],
}


def places(config: dict[str, Any]) -> dict[str, str]:
    return {one["destination"]: one["source"] for one in config["mounts"]}


def test_only_command_environment_and_script_are_taken() -> None:
    config = bundle.configuration(GIVEN, TASK, "/")

    assert config["process"]["args"] == ["id"]
    assert config["root"] == {"path": "root", "readonly": False}
    assert "hooks" not in config
    assert places(config)[bundle.STARTUP] == "/spool/slurm_script"
    assert "/etc" not in places(config)


def test_the_images_variables_come_first_and_ours_last() -> None:
    found = bundle.environment(GIVEN, TASK)

    assert found["PATH"] == "/image"
    assert (found["A"], found["HOME"], found["SCRATCH"]) == ("b=c", "/share/home/alice", "/scratch/job-7")
    assert "SLURM_CONF" not in found


def test_the_user_keeps_number_and_group_without_privileges() -> None:
    config = bundle.configuration(GIVEN, TASK, "/")
    process = config["process"]

    assert process["user"] == {"uid": 2001, "gid": 2002}
    assert [mapping["containerID"] for mapping in config["linux"]["uidMappings"]] == [2001]
    assert (process["capabilities"], process["noNewPrivileges"]) == ({}, True)


@pytest.mark.parametrize("network", [False, True])
def test_the_network_and_the_names_in_it_come_together(network: bool) -> None:
    config = bundle.configuration(GIVEN, TASK._replace(network=network), "/")

    assert ({"type": "network"} in config["linux"]["namespaces"]) is not network
    assert ("/etc/hosts" in places(config)) is network


def test_a_task_sees_no_file_that_decides_about_a_task() -> None:
    config = bundle.configuration(GIVEN, TASK, "/")

    assert places(config)["/scratch/job-7"] == "/scratch/job-7/files"
    assert places(config)["/tmp"] == "/scratch/job-7/.sandbox/task-x/tmp"


def test_no_new_namespace_passes_the_filter() -> None:
    rules = bundle.configuration(GIVEN, TASK, "/")["linux"]["seccomp"]["syscalls"]
    flags = [rule["args"][0]["value"] for rule in rules if rule["names"] == ["clone"]]

    assert sum(flags) == bundle.NEW_NAMESPACES
    assert all(flag.bit_count() == 1 for flag in flags)


def test_sockets_that_no_namespace_separates_are_refused() -> None:
    rules = bundle.configuration(GIVEN, TASK, "/")["linux"]["seccomp"]["syscalls"]
    refused = [rule["args"] for rule in rules if rule["names"] == ["socket"]]

    assert refused == [[{"index": 0, "op": "SCMP_CMP_EQ", "value": family}] for family in (38, 40)]
