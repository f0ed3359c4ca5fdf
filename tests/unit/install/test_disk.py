"""The disk of a new machine: named by serial, and only if it is blank. The contents are those of real images."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.install import disk
from ansible.module_utils.slurmstead.install.disk import Refused, Seen, choose
from ansible.module_utils.slurmstead.storage import content
from tests import disk_images

SIZE = 12 * 10**9


def seen(directory: pathlib.Path, kind: str, serial: str, device: str = "/dev/sda") -> Seen:
    """Return a disk whose content is that of an image."""
    image = directory / device.rpartition("/")[2]
    disk_images.write(image, SIZE, {} if kind == "blank" else disk_images.KINDS[kind][0](SIZE))
    return Seen(device, serial, [f"ata-Disk_{serial}"], SIZE, content.content(str(image), SIZE))


def test_the_blank_disk_with_the_serial_is_chosen(tmp_path: pathlib.Path) -> None:
    disks = [seen(tmp_path, "gpt", "A1"), seen(tmp_path, "blank", "A2", "/dev/sdb")]

    assert [choose(disks, name).device for name in ("A2", "ata-Disk_A2", "/dev/disk/by-id/ata-Disk_A2")] == [
        "/dev/sdb"
    ] * 3


@pytest.mark.parametrize("kind", ["gpt", "ext4", "lvm", "ntfs", "last-byte", "middle"])
def test_a_disk_with_data_is_refused_and_named_with_what_is_on_it(tmp_path: pathlib.Path, kind: str) -> None:
    with pytest.raises(Refused, match="expected a blank disk, found /dev/sda") as refusal:
        choose([seen(tmp_path, kind, "A1")], "A1")

    assert disk_images.KINDS[kind][1] in str(refusal.value)


def test_a_wrong_serial_is_refused_with_the_disks_that_are_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Refused, match=r"no disk has the serial A9 .*/dev/sda \(serial A1, 11.2 GiB, blank\)"):
        choose([seen(tmp_path, "blank", "A1")], "A9")


def test_two_disks_with_one_serial_are_refused_unless_a_name_tells_them_apart(tmp_path: pathlib.Path) -> None:
    one, other = seen(tmp_path, "blank", "A1"), seen(tmp_path, "blank", "A1", "/dev/sdb")
    other = Seen(other.device, other.serial, ["wwn-0x2"], other.size)

    with pytest.raises(Refused, match="2 disks have the serial A1"):
        choose([one, other], "A1")
    assert choose([one, other], "wwn-0x2") == other


def test_without_a_serial_nothing_is_chosen(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Refused, match="install_disk is not set"):
        choose([seen(tmp_path, "blank", "")], "")


def test_a_small_disk_is_refused() -> None:
    with pytest.raises(Refused, match=r"is smaller than 7.5 GiB"):
        choose([Seen("/dev/sda", "A1", [], 4 * 10**9)], "A1")


def described(serial: str, *names: str, label: str = "gpt") -> dict[str, object]:
    """What `sfdisk --json` says about a disk."""
    parts = [{"node": f"/dev/sda{number}", "name": name} for number, name in enumerate(names, 1)]
    return {"partitiontable": {"label": label, "id": disk.table_id(serial, "node1"), "partitions": parts}}


def test_only_an_interrupted_installation_on_this_disk_may_be_repeated() -> None:
    names = ("stead-bios", "stead-efi")

    assert disk.is_unfinished(described("A1", *names, disk.UNFINISHED), "A1", "node1")
    assert not disk.is_unfinished(described("A1", *names, "stead-root"), "A1", "node1")
    assert not disk.is_unfinished(described("A2", *names, disk.UNFINISHED), "A1", "node1")
    assert not disk.is_unfinished(described("A1", *names, disk.UNFINISHED), "A1", "node2")
    assert not disk.is_unfinished(described("A1", *names, disk.UNFINISHED, "data"), "A1", "node1")
    assert not disk.is_unfinished({}, "A1", "node1")
    assert choose([Seen("/dev/sda", "A1", [], SIZE, ["partitions: sda1"], is_unfinished=True)], "A1").size == SIZE
