"""A machine of the lab: its QEMU command, what its first boot is told, and how ssh reaches it."""

from __future__ import annotations

import base64
import dataclasses
import pathlib
import re
import shutil
import subprocess

import pytest

from ansible.module_utils.slurmstead.lab import machine as lab

MACHINE = lab.Machine("node1", 1, "10.77.0.1/24", "amd64", memory=1024, cpus=2)
DIRECTORY = "/state/lab/default/node1"
DISKS = (
    lab.Disk("node1-nvme0", 2, "nvme"),
    lab.Disk("node1-sata0", 4, "scsi"),
    lab.Disk("node1-virtio0", 1),
)


def command(machine: lab.Machine = MACHINE, accelerator: str = "tcg", port: int = 2201) -> list[str]:
    return lab.qemu_command(machine, DIRECTORY, "/images/bookworm", accelerator, port)


def values(words: list[str], option: str) -> list[str]:
    """The values that an option is given."""
    return [value for name, value in zip(words, words[1:], strict=False) if name == option]


@pytest.mark.parametrize("name", sorted(lab.ARCHITECTURES))
def test_each_architecture_has_all_that_a_machine_needs(name: str) -> None:
    architecture = lab.ARCHITECTURES[name]
    words = command(dataclasses.replace(MACHINE, architecture=name), accelerator="kvm")

    assert words[0] == architecture.qemu
    assert values(words, "-machine") == [architecture.machine]
    assert values(words, "-append") == [f"root=/dev/vda rw console={architecture.console}"]


@pytest.mark.parametrize(("accelerator", "threads"), [("kvm", False), ("tcg", True)])
def test_threads_are_only_a_matter_of_tcg(accelerator: str, threads: bool) -> None:
    words = command(accelerator=accelerator)

    (accel,) = values(words, "-accel")
    assert accel.partition(",")[0] == accelerator
    assert ("thread=multi" in accel) is threads
    assert values(words, "-cpu") == [lab.ARCHITECTURES["amd64"].cpu[accelerator]]


@pytest.mark.parametrize(
    ("architecture", "accelerator", "told"),
    [
        ("amd64", "tcg", ["norandmaps", *lab.RESTART_ON_STALL, "clearcpuid=cx16"]),
        ("amd64", "kvm", []),
        ("arm64", "tcg", ["norandmaps", *lab.RESTART_ON_STALL]),
    ],
)
def test_the_kernel_avoids_what_is_slow_or_wrong_under_tcg(
    architecture: str, accelerator: str, told: list[str]
) -> None:
    (arguments,) = values(command(dataclasses.replace(MACHINE, architecture=architecture), accelerator), "-append")

    assert arguments.split(" ")[3:] == told


def test_memory_and_cpus_are_those_of_the_inventory() -> None:
    words = command(dataclasses.replace(MACHINE, memory=768, cpus=3))

    assert (values(words, "-m"), values(words, "-smp")) == (["768M"], ["3"])


def test_a_board_boots_with_its_own_device_tree() -> None:
    assert values(command(dataclasses.replace(MACHINE, device_tree="board.dtb")), "-dtb") == ["board.dtb"]
    assert values(command(), "-dtb") == []


def test_nothing_listens_beyond_loopback() -> None:
    words = command(dataclasses.replace(MACHINE, disks=DISKS))

    assert re.findall(r"hostfwd=\S*", " ".join(words)) == ["hostfwd=tcp:127.0.0.1:2201-:22"]
    assert values(words, "-display") == ["none"]
    assert {"-nodefaults", "-no-user-config"} <= set(words), "QEMU would add devices of its own"
    assert not {"-vnc", "-gdb", "-s", "-monitor", "-redir"} & set(words)


def test_sockets_have_short_names_wherever_the_lab_is() -> None:
    words = lab.qemu_command(MACHINE, "/long" * 40, "/images/bookworm", "tcg", 2201)

    sockets = [value for value in words if value.startswith(("unix:", "vde,"))]
    assert sockets == ["unix:qmp,server=on,wait=off", "vde,id=cluster,sock=../switch"]


def test_the_process_can_be_told_by_its_pid_file() -> None:
    assert values(command(), "-pidfile") == [f"{DIRECTORY}/pid"]


def test_two_machines_share_no_hardware_address() -> None:
    machines = [dataclasses.replace(MACHINE, number=number) for number in (1, 16, 254)]

    addresses = [address for machine in machines for address in (machine.cluster_mac, machine.uplink_mac)]

    assert len(set(addresses)) == 6
    assert all(re.fullmatch("52:54:00(:[0-9a-f]{2}){3}", address) for address in addresses)


@pytest.mark.parametrize("disk", DISKS, ids=lambda disk: disk.bus)
def test_an_extra_disk_has_its_serial_on_its_bus(disk: lab.Disk) -> None:
    words = command(dataclasses.replace(MACHINE, disks=(disk,)))

    assert f"id=disk0,if=none,file={DIRECTORY}/{disk.serial}.raw,format=raw,cache=unsafe" in values(words, "-drive")
    device = next(value for value in values(words, "-device") if "drive=disk0" in value)
    assert f"serial={disk.serial}" in device
    assert "{" not in " ".join(words), "a placeholder was not replaced"


def test_disks_are_found_from_any_directory_whatever_its_name() -> None:
    machine = dataclasses.replace(MACHINE, disks=DISKS[:1])
    words = lab.qemu_command(machine, "/lab,1/node1", "/images/bookworm", "tcg", 2201)

    assert [value.split("file=")[1].split(",format")[0] for value in values(words, "-drive")] == [
        "/lab,,1/node1/root.qcow2",
        "/lab,,1/node1/node1-nvme0.raw",
    ]


def test_every_disk_has_an_id_of_its_own() -> None:
    words = command(dataclasses.replace(MACHINE, disks=DISKS))

    ids = re.findall(r"\bid=([^,]+)", " ".join(words))
    assert len(ids) == len(set(ids))
    assert [re.findall("drive=(disk[0-9])", value) for value in values(words, "-device") if "drive=disk" in value] == [
        ["disk0"],
        ["disk1"],
        ["disk2"],
    ]


def test_the_root_disk_comes_first_so_that_the_kernel_finds_it() -> None:
    disk = lab.Disk("other", 1, "virtio")
    devices = [
        value
        for value in values(command(dataclasses.replace(MACHINE, disks=(disk,))), "-device")
        if value.startswith("virtio-blk-pci")
    ]

    assert devices == ["virtio-blk-pci,drive=root", "virtio-blk-pci,drive=disk0,serial=other"]


def test_the_first_boot_brings_keys_and_address() -> None:
    lines = lab.first_boot_files(MACHINE, "ssh-ed25519 AAAA me\n", "PRIVATE\nKEY\n").splitlines()

    assert lines[0] == "d /home/debian/.ssh 0700 debian debian"
    files = {}
    for line in lines[1:]:
        kind, path, mode, owner, group, age, content = line.split(" ")
        # f~: written once, from base64 (tmpfiles.d(5), systemd >= 250).
        assert (kind, owner, age) == ("f~", group, "-")
        files[path] = (mode, owner, base64.b64decode(content).decode())
    assert files == {
        "/home/debian/.ssh/authorized_keys": ("0600", "debian", "ssh-ed25519 AAAA me\n"),
        "/etc/ssh/ssh_host_ed25519_key": ("0600", "root", "PRIVATE\nKEY\n"),
        "/etc/systemd/network/10-cluster.network": (
            "0644",
            "root",
            "[Match]\nMACAddress=52:54:00:00:01:01\n\n[Network]\nAddress=10.77.0.1/24\n",
        ),
    }


@pytest.mark.parametrize("home", ["me", "Zoë Müller"])
def test_ssh_reads_the_section_of_a_machine_as_meant(tmp_path: pathlib.Path, home: str) -> None:
    """By ssh itself: `ssh -G` prints what it would do."""
    ssh = shutil.which("ssh")
    assert ssh, "Install openssh-client, without which Ansible reaches no machine"
    directory = tmp_path / home / "lab"
    (directory / "node1").mkdir(parents=True)
    section = lab.ssh_config(MACHINE, f"{directory}/node1", f"{directory}/key", 2201)
    (directory / "node1" / "ssh_config").write_text(section)
    (directory / "ssh_config").write_text(lab.lab_ssh_config(str(directory)))

    done = subprocess.run(
        [ssh, "-F", directory / "ssh_config", "-G", "node1"], capture_output=True, text=True, check=True
    )

    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    expected = {
        "hostname": "127.0.0.1",
        "port": "2201",
        "user": "debian",
        "hostkeyalias": "node1",
        "userknownhostsfile": f"{directory}/node1/known_hosts",
        "stricthostkeychecking": "true",
        "identityfile": f"{directory}/key",
        "identitiesonly": "yes",
    }
    assert {name: said[name] for name in expected} == expected
