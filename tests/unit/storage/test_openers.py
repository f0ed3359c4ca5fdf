"""Processes and drivers that have a disk open are found, however they opened it."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.storage import blank, disks, openers

SDA, SDA1 = "8:0", "8:1"


class Machine:
    """A machine with the disk sda, its partition sda1 and files of processes, as trees of files."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.write("sys/devices/sda/dev", SDA)
        self.write("sys/devices/sda/sda1/dev", SDA1)
        self.write("sys/devices/sda/sda1/partition", "1")
        self.write("sys/devices/sda/device/scsi_generic/sg0/dev", "21:0")
        for number, node in ((SDA, "sda"), (SDA1, "sda/sda1")):
            link = root / "sys/dev/block" / number
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(root / "sys/devices" / node)

    def write(self, name: str, text: str) -> None:
        """Write a file of the machine."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def open(self, process: int, file: str, mount: int = 22) -> None:
        """Let a process have a file open that is on a mount."""
        self.write(f"proc/{process}/comm", "qemu-system-x86")
        self.write(f"proc/{process}/mountinfo", MOUNTS)
        self.write(f"proc/{process}/fdinfo/7", f"pos:\t0\nflags:\t02100002\nmnt_id:\t{mount}")
        link = self.root / f"proc/{process}/fd/7"
        link.parent.mkdir()
        link.symlink_to(file)

    def findings(self, number: str = SDA) -> list[str]:
        """Return who has a disk or partition open."""
        return openers.findings(disks.Disk("/dev/disk/by-id/ata-CT1000", "/dev/sda", number, 2**30, 512, "", ""))


MOUNTS = """\
22 1 0:6 / /dev rw - devtmpfs udev rw
30 1 0:45 / /share rw - nfs4 head:/share rw"""

DEVICES = {
    "/dev/sda": "block 8:0",
    "/dev/sda1": "block 8:1",
    "/srv/odd": "block 8:0",
    "/dev/sdb": "block 8:16",
    "/dev/sg0": "character 21:0",
    "/dev/null": "character 1:3",
    "/dev/tty0": "character 8:0",
}


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were looked at; their names tell what they are."""
    seen = []

    def identity(path: pathlib.Path) -> str | None:
        seen.append(os.readlink(path) if path.is_symlink() else str(path))
        return DEVICES.get(seen[-1])

    monkeypatch.setattr(openers, "identity", identity)
    return seen


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine on which no process has the disk open, and nothing is waited for."""
    monkeypatch.setattr(disks, "SYS", tmp_path / "sys")
    monkeypatch.setattr(disks, "PROC", tmp_path / "proc")
    monkeypatch.setattr(openers, "PATIENCE", 0)
    return Machine(tmp_path)


@pytest.mark.usefixtures("looked")
@pytest.mark.parametrize("file", ["/dev/sda", "/dev/sda1", "/srv/odd", "/dev/sg0"])
def test_a_process_with_a_disk_open_is_named(machine: Machine, file: str) -> None:
    machine.open(4711, file)
    assert machine.findings() == ["open in qemu-system-x86 (process 4711)"]


@pytest.mark.usefixtures("looked")
@pytest.mark.parametrize("file", ["/dev/sda", "/dev/sda1"])
def test_a_partition_is_in_use_if_it_or_its_disk_is_open(machine: Machine, file: str) -> None:
    machine.open(4711, file)
    assert machine.findings(SDA1) == ["open in qemu-system-x86 (process 4711)"]


@pytest.mark.usefixtures("looked")
@pytest.mark.parametrize("file", ["/dev/sdb", "/dev/null", "/dev/tty0", "/home/disk.img", "socket:[4242]"])
def test_other_files_are_not_the_disk(machine: Machine, file: str) -> None:
    machine.open(4711, file)
    assert machine.findings() == []


def test_files_of_a_server_that_may_be_down_are_not_looked_at(machine: Machine, looked: list[str]) -> None:
    machine.open(4711, "/share/home/alice/data", mount=30)
    machine.open(4712, "/dev/sda")
    assert machine.findings() == ["open in qemu-system-x86 (process 4712)"]
    assert "/share/home/alice/data" not in looked


@pytest.mark.parametrize(
    "name",
    [
        "block/loop3/loop/backing_file",
        "kernel/config/nvmet/subsystems/lab/namespaces/1/device_path",
        "kernel/config/usb_gadget/g1/functions/mass_storage.0/lun.0/file",
    ],
)
@pytest.mark.usefixtures("looked")
def test_a_driver_with_the_disk_open_is_named(machine: Machine, name: str) -> None:
    machine.write(f"sys/{name}", "/dev/sda")
    assert machine.findings() == [f"open in the kernel ({name})"]


@pytest.mark.usefixtures("looked")
@pytest.mark.parametrize("backing", ["/var/lib/images/disk.img", "/dev/sdb", "", "/dev/sda (deleted)"])
def test_a_loop_device_over_something_else_is_not_the_disk(machine: Machine, backing: str) -> None:
    machine.write("sys/block/loop3/loop/backing_file", backing)
    assert machine.findings() == []


def test_open_files_that_cannot_be_read_are_a_finding(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.open(4711, "/dev/sda")

    def refuse(path: pathlib.Path) -> Iterator[pathlib.Path]:
        raise PermissionError(path)

    monkeypatch.setattr(pathlib.Path, "iterdir", refuse)
    assert machine.findings() == ["the open files of process 4711 cannot be read"]


@pytest.mark.usefixtures("looked")
def test_a_program_that_only_looks_is_waited_for(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.open(4711, "/dev/sda")
    monkeypatch.setattr(openers, "PATIENCE", 60)
    monkeypatch.setattr(openers.time, "sleep", lambda seconds: (machine.root / "proc/4711/fd/7").unlink())
    assert machine.findings() == []


def test_a_real_process_that_has_a_real_device_open_is_named(machine: Machine) -> None:
    """A terminal of its own is a device that every user can create."""
    other, device = os.openpty()
    number = os.fstat(device).st_rdev
    machine.write("sys/devices/sda/device/scsi_generic/sg0/dev", f"{os.major(number)}:{os.minor(number)}")
    (machine.root / "proc").mkdir()
    with subprocess.Popen(["sleep", "60"], stdin=device) as process:
        os.close(device)
        (machine.root / f"proc/{process.pid}").symlink_to(f"/proc/{process.pid}")
        named = machine.findings()
        process.kill()
    os.close(other)
    assert named == [f"open in sleep (process {process.pid})"]
    assert machine.findings() == []


@pytest.mark.usefixtures("looked")
def test_a_disk_that_a_process_has_open_is_not_blank(machine: Machine) -> None:
    """The finding is one of those that refuse a disk."""
    machine.open(4711, "/dev/sda")
    machine.write("proc/self/mountinfo", MOUNTS)
    disk = disks.Disk("/dev/disk/by-id/ata-CT1000", os.devnull, SDA, 2**30, 512, "", "")
    assert "open in qemu-system-x86 (process 4711)" in blank.usage(disk)
