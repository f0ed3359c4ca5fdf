# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Which disk of a machine gets the system: the one with the wanted serial, and only if it is blank."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence

from ansible.module_utils.slurmstead.storage.disks import human_size

SMALLEST = 8 * 10**9
"""In bytes; the system of a worker needs about 3 GB, and room for packages and logs."""

UNFINISHED = "stead-unfinished"
"""Name of the root partition while an installation runs."""

BIOS_BOOT = "21686148-6449-6E6F-744E-656564454649"
ESP = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"


class Refused(Exception):
    """The machine is not changed; the text says why and what to do."""


@dataclasses.dataclass(frozen=True)
class Seen:
    """A disk of the machine: its kernel device, serial, names below /dev/disk/by-id, size in bytes, and content."""

    device: str
    serial: str
    names: Sequence[str]
    size: int
    content: Sequence[str] = ()
    """why it is not blank; empty if it is"""
    is_unfinished: bool = False
    """whether all that is on it is an installation of ours that was interrupted"""

    @property
    def described(self) -> str:
        """Return the disk as messages name it."""
        state = f"not blank: {'; '.join(self.content)}" if self.content else "blank"
        state = "an interrupted installation" if self.is_unfinished else state
        return f"{self.device} (serial {self.serial or 'unknown'}, {human_size(self.size)}, {state})"


def choose(disks: Sequence[Seen], wanted: str) -> Seen:
    """Return the disk to be written.

    :param wanted: a serial or a name below /dev/disk/by-id
    :raises Refused: there is no such disk, there are several, or it is not blank
    """
    listed = ", ".join(disk.described for disk in disks) or "no disks"
    if not wanted:
        raise Refused(f"install_disk is not set. The machine has {listed}. Set it to the serial of the disk to be used")
    name = wanted.removeprefix("/dev/disk/by-id/")
    found = [disk for disk in disks if name == disk.serial or name in disk.names]
    if not found:
        raise Refused(f"no disk has the serial {wanted} (install_disk). The machine has {listed}. Correct install_disk")
    if len(found) > 1:
        which = " and ".join(disk.described for disk in found)
        raise Refused(
            f"{len(found)} disks have the serial {wanted} (install_disk): {which}. "
            "Set install_disk to a name of /dev/disk/by-id that only one has, or unplug the others"
        )
    disk = found[0]
    if disk.content and not disk.is_unfinished:
        raise Refused(
            f"expected a blank disk, found {disk.described}. Nothing was written to it. Choose another disk, or, if "
            "its data are not needed, erase all of it with another system: wipefs --all, then blkdiscard --zeroout"
        )
    if disk.size < SMALLEST:
        raise Refused(f"{disk.described} is smaller than {human_size(SMALLEST)}. Choose another disk")
    return disk


def table_id(serial: str, node: str) -> str:
    """Return the ID of the partition table that an installation writes: a copy on another disk does not have its own.

    >>> table_id("A1", "node1") == table_id("A1", "node1") != table_id("A2", "node1")
    True
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"slurmstead:install:{node}:{serial}")).upper()


def table(serial: str, node: str) -> str:
    """Return the input of sfdisk(8): the disk starts by BIOS and by UEFI."""
    return "\n".join(
        [
            "label: gpt",
            f"label-id: {table_id(serial, node)}",
            f'size=1MiB, type={BIOS_BOOT}, name="stead-bios"',
            f'size=512MiB, type={ESP}, name="stead-efi"',
            f'type={LINUX}, name="{UNFINISHED}"',
            "",
        ]
    )


def is_unfinished(described: dict[str, object], serial: str, node: str) -> bool:
    """Say whether a partition table, from `sfdisk --json`, is that of an interrupted installation on this disk.

    >>> is_unfinished({"partitiontable": {"label": "dos", "id": "0x1"}}, "A1", "node1")
    False
    """
    found = described.get("partitiontable")
    if not isinstance(found, dict) or found.get("label") != "gpt":
        return False
    names = [part.get("name") for part in found.get("partitions", ())]
    own = str(found.get("id", "")).upper() == table_id(serial, node)
    return own and names == ["stead-bios", "stead-efi", UNFINISHED]


def partition(device: str, number: int) -> str:
    """Return the device of a partition.

    >>> partition("/dev/sda", 3), partition("/dev/nvme0n1", 3)
    ('/dev/sda3', '/dev/nvme0n1p3')
    """
    return f"{device}p{number}" if device[-1].isdigit() else f"{device}{number}"
