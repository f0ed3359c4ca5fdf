"""Names mean disks, and who uses a disk is found; trees of files stand for /sys, /proc and /dev."""

from __future__ import annotations

import errno
import os
import pathlib
import shlex

import pytest

from ansible.module_utils.slurmstead.storage import blank, content, disks

SDA, SDA1, DM = "8:0", "8:1", "253:0"


class Machine:
    """A machine with one disk, sda, of 1 GiB."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.device = root / "dev/sda"
        self.node = root / "sys/devices/sda"
        for name, text in {
            "sys/devices/sda/size": "2097152\n",
            "sys/devices/sda/ro": "0\n",
            "sys/devices/sda/dev": f"{SDA}\n",
            "sys/devices/sda/queue/logical_block_size": "4096\n",
            "sys/devices/sda/device/model": "CT1000MX500SSD1\n",
            "proc/self/mountinfo": "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n",
            "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
            f"udev/b{SDA}": "S:disk/by-id/ata-CT1000\nE:ID_MODEL=other\nE:ID_SERIAL_SHORT=2117E5A0B123\n",
            "dev/sda": "",
        }.items():
            self.write(name, text)
        self.link(SDA, "sda")

    def write(self, name: str, text: str) -> None:
        """Write a file of the machine."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def link(self, number: str, node: str) -> None:
        """Let /sys know a device by its number."""
        link = self.root / "sys/dev/block" / number
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(self.root / "sys/devices" / node)

    def add_partition(self) -> None:
        """Add the partition sda1."""
        for name, text in {"partition": "1\n", "dev": f"{SDA1}\n", "size": "2048\n", "ro": "0\n"}.items():
            self.write(f"sys/devices/sda/sda1/{name}", text)
        self.link(SDA1, "sda/sda1")

    @property
    def disk(self) -> disks.Disk:
        """The disk."""
        return disks.measure("/dev/disk/by-id/ata-CT1000", str(self.device), SDA)


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with one blank disk that nobody uses."""
    monkeypatch.setattr(disks, "SYS", tmp_path / "sys")
    monkeypatch.setattr(disks, "PROC", tmp_path / "proc")
    monkeypatch.setattr(disks, "DEV", tmp_path / "dev")
    monkeypatch.setattr(disks, "UDEV", tmp_path / "udev")
    numbers = {"/dev/sda": SDA, "/dev/sda1": SDA1, "/dev/vda1": "254:1"}
    monkeypatch.setattr(disks, "device_number", lambda path: numbers.get(str(path)))
    return Machine(tmp_path)


def test_a_disk_that_nobody_uses_is_free(machine: Machine) -> None:
    assert blank.usage(machine.disk) == []


def test_a_disk_is_described_by_name_device_model_serial_and_size(machine: Machine) -> None:
    assert disks.describe(machine.disk) == (
        f"/dev/disk/by-id/ata-CT1000 ({machine.device}, CT1000MX500SSD1, serial 2117E5A0B123, 1.0 GiB)"
    )
    assert (machine.disk.size, machine.disk.sector) == (2**30, 4096)


def test_a_partition_has_the_model_of_its_disk(machine: Machine) -> None:
    machine.add_partition()
    partition = disks.measure("/dev/disk/by-id/ata-CT1000-part1", "/dev/sda1", SDA1)
    assert (partition.model, partition.size, partition.sector) == ("CT1000MX500SSD1", 2**20, 4096)


def test_partitions_are_found(machine: Machine) -> None:
    machine.add_partition()
    assert blank.usage(machine.disk) == ["partitions: sda1"]


@pytest.mark.parametrize("part", ["", "sda1/"])
def test_a_holder_of_a_disk_or_its_partition_is_found(machine: Machine, part: str) -> None:
    machine.add_partition()
    machine.write(f"sys/devices/sda/{part}holders/dm-0/dm/name", "old-home\n")
    assert "held by old-home" in blank.usage(machine.disk)


@pytest.mark.parametrize("number", [SDA, SDA1])
def test_a_mounted_disk_or_partition_is_found(machine: Machine, number: str) -> None:
    machine.add_partition()
    machine.write("proc/self/mountinfo", f"30 22 {number} / /mnt/my\\040data rw - ext4 /dev/x rw\n")
    assert "mounted at /mnt/my data" in blank.usage(machine.disk)


def test_a_users_mount_whose_name_has_a_vertical_tab_hides_no_other(machine: Machine) -> None:
    other = "31 22 0:50 / /tmp/a\x0bb rw - fuse sshfs rw\n"
    machine.write("proc/self/mountinfo", f"{other}30 22 {SDA} / /mnt rw - ext4 /dev/sda rw\n")
    assert blank.usage(machine.disk) == ["mounted at /mnt"]


def test_a_mount_whose_number_is_not_that_of_its_disk_is_found(machine: Machine) -> None:
    machine.write("proc/self/mountinfo", "30 22 0:45 /home /home rw shared:1 - btrfs /dev/sda rw,subvol=/home\n")
    assert blank.usage(machine.disk) == ["mounted at /home"]


@pytest.mark.parametrize("device", ["/dev/sda", "/dev/sda1"])
def test_active_swap_is_found(machine: Machine, device: str) -> None:
    machine.add_partition()
    machine.write("proc/swaps", f"Filename\tType\tSize\tUsed\tPriority\n{device} partition 1024 0 -2\n")
    assert "in use as swap space" in blank.usage(machine.disk)


def test_a_read_only_disk_is_found(machine: Machine) -> None:
    machine.write("sys/devices/sda/ro", "1\n")
    assert blank.usage(machine.disk) == ["it is read-only"]


def test_a_reader_without_a_card_is_found(machine: Machine) -> None:
    machine.write("sys/devices/sda/size", "0\n")
    assert blank.findings(machine.disk) == ["it has no medium (size 0)"]


def test_a_logical_volume_is_no_disk(machine: Machine) -> None:
    machine.write("sys/devices/sda/dm/uuid", "LVM-abcdef\n")
    assert blank.usage(machine.disk) == ["it is a logical volume itself"]


@pytest.mark.parametrize(
    ("code", "finding"),
    [(errno.EBUSY, "in use (opened exclusively)"), (errno.EIO, "it cannot be opened: Input/output error")],
)
def test_a_disk_that_cannot_be_opened_alone_is_found(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, code: int, finding: str
) -> None:
    def refuse(path: str, flags: int) -> int:
        assert flags & os.O_EXCL
        assert flags & os.O_ACCMODE == os.O_RDONLY
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(blank.os, "open", refuse)
    assert blank.usage(machine.disk) == [finding]


def test_a_disk_that_cannot_be_judged_is_not_blank(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str, size: int) -> list[str]:
        raise disks.DiskError("blkid failed")

    monkeypatch.setattr(content, "content", fail)
    assert blank.findings(machine.disk) == ["blkid failed"]


def test_a_refusal_names_the_disk_what_was_found_and_what_to_do(machine: Machine) -> None:
    message = blank.refusal(machine.disk, ["partition table gpt", "mounted at /home"])
    for part in (
        disks.describe(machine.disk),
        "expected a blank disk",
        "partition table gpt; mounted at /home",
        f"`wipefs --all {machine.disk.name} && blkdiscard --zeroout {machine.disk.name}`",
    ):
        assert part in message


def test_the_command_that_erases_a_disk_can_be_pasted() -> None:
    name = r"/dev/disk/by-id/usb-SD\x2fMMC_Reader-0:0"
    assert shlex.split(blank.erase_command(name)) == ["wipefs", "--all", name, "&&", "blkdiscard", "--zeroout", name]


@pytest.mark.parametrize(
    "name",
    [
        "/dev/sda",
        "/dev/nvme0n1",
        "/dev/vdb1",
        "/dev/md0",
        "/dev/dm-0",
        "/dev/vg/lv",
        "sda",
        "",
        "/dev/disk/by-label/data",
        "/dev/disk/by-id/../../sda",
        "/dev/disk/by-id/..",
        "/dev/disk/by-id/",
        "/dev/mapper/control",
        "/home/disk.img",
    ],
)
def test_a_name_that_can_mean_another_disk_is_refused(machine: Machine, name: str) -> None:
    with pytest.raises(disks.DiskError, match="expected a name that stays with the disk"):
        disks.resolve(name)


def test_a_refused_name_comes_with_those_that_stay(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "disk/by-id"
    directory.mkdir(parents=True)
    for name, target in {"wwn-0x5": "/dev/sda", "ata-CT1000": "/dev/sda", "ata-OTHER": "/dev/sdb"}.items():
        (directory / name).symlink_to(target)
    (directory / "lvm-pv-uuid-x").symlink_to("/dev/sda")
    monkeypatch.setattr(disks, "DEV", tmp_path)
    with pytest.raises(disks.DiskError, match=f"write one of its names: {directory}/ata-CT1000, {directory}/wwn-0x5$"):
        disks.check_name("/dev/sda")


def test_a_disk_without_a_name_of_its_own_is_named_by_its_place(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk/by-path").mkdir(parents=True)
    (tmp_path / "disk/by-path/pci-0000:00:04.0").symlink_to("/dev/vdb")
    monkeypatch.setattr(disks, "DEV", tmp_path)
    assert disks.stable_names("/dev/vdb") == [f"{tmp_path}/disk/by-path/pci-0000:00:04.0"]


def test_a_disk_that_is_not_there_is_named() -> None:
    with pytest.raises(
        disks.DiskError, match="/dev/disk/by-id/none: expected a disk, but this machine has none of that name"
    ):
        disks.resolve("/dev/disk/by-id/none")


def test_what_is_no_block_device_is_refused(machine: Machine) -> None:
    with pytest.raises(disks.DiskError, match="expected a block device"):
        disks.resolve("/dev/mapper/none")
