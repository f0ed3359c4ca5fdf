"""A container of the lab: the commands that run it, and which processes are its own."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.lab import container as lab

NODE = lab.Container("node1", 1, "default", "/lab/default/node1", (("/srv/share", "/lab/default/shared/srv/share"),))


@pytest.mark.parametrize("systemd", [True, False])
def test_only_without_systemd_a_container_stays_in_the_cgroup_that_it_was_given(systemd: bool) -> None:
    command = lab.nspawn_command(NODE, systemd=systemd, autofs=True)

    assert ("--keep-unit" in command) is not systemd


def test_a_container_has_the_shared_directory_its_network_and_no_device_that_is_missing_here() -> None:
    command = lab.nspawn_command(NODE, systemd=False, autofs=False)

    binds = [word for word in command if word.startswith("--bind")]
    assert binds == ["--bind=/lab/default/shared/srv/share:/srv/share"]
    assert "--network-namespace-path=/lab/default/node1/network" in command
    assert "--capability=CAP_NET_ADMIN" in command


def test_containers_of_the_same_name_in_two_labs_have_different_scopes_and_cgroups() -> None:
    other = lab.Container("node1", 1, "test", "/lab/test/node1")
    mounts = "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0"

    names = [
        command[command.index("--machine") + 1]
        for command in (lab.nspawn_command(node, systemd=True, autofs=True) for node in (NODE, other))
    ]
    assert names == ["default-node1", "test-node1"]
    assert not set(lab.cgroups(NODE, mounts)) & set(lab.cgroups(other, mounts))
    assert len(lab.cgroups(NODE, mounts)) == 2


def test_a_controller_of_cgroups_version_1_holds_no_cgroup_of_ours() -> None:
    assert lab.cgroups(NODE, "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0") == []


def test_a_process_belongs_to_the_container_whose_directory_it_names() -> None:
    machine = lab.nspawn_command(NODE, systemd=False, autofs=True)
    other = lab.Container("node1", 1, "test", "/lab/test/node1")

    assert lab.owns(NODE, machine) == "machine"
    assert lab.owns(NODE, lab.uplink_command(NODE, "/bridge", 3)) == "uplink"
    assert lab.owns(other, machine) == lab.owns(other, lab.uplink_command(NODE, "/bridge", 3)) == ""
    assert lab.owns(NODE, ["nsenter", "--net=/lab/default/node1/network", "ip", "link"]) == ""


def test_the_name_of_an_interface_fits_the_kernel() -> None:
    node = lab.Container("a-rather-long-name-of-a-node", 254, "default", "/lab/default/x")

    assert len(node.port) <= 15


def test_ssh_is_forwarded_from_loopback_only() -> None:
    assert lab.forwarding(2201)["arguments"] == {
        "proto": "tcp",
        "host_addr": "127.0.0.1",
        "host_port": 2201,
        "guest_addr": lab.UPLINK_ADDRESS,
        "guest_port": 22,
    }
