# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Whether a disk may be written: only if nothing uses it and nothing is on it."""

from __future__ import annotations

import errno
import os
import shlex

from ansible.module_utils.slurmstead.storage import content, disks, mounts, openers
from ansible.module_utils.slurmstead.storage.disks import Disk, DiskError, read_text


def findings(disk: Disk) -> list[str]:
    """Return all reasons why a disk is not blank; empty if it may be written.

    A check that fails is also a reason: nothing here raises for a disk that exists.
    """
    found = usage(disk)
    if disk.size == 0:
        return found
    try:
        found += content.content(disk.device, disk.size)
    except DiskError as error:
        found.append(str(error))
    return list(dict.fromkeys(found))


def refusal(disk: Disk, found: list[str]) -> str:
    """Return the message for a disk that is not blank."""
    return (
        f"{disks.describe(disk)}: expected a blank disk, found {'; '.join(found)}. Nothing was written to it. Remove "
        f"it from the inventory, or, if its data are not needed, erase the whole disk by hand on that machine: "
        f"`{erase_command(disk.name)}`"
    )


def erase_command(name: str) -> str:
    """Return the command with which a person releases a disk: after it, all bytes of the disk are zero.

    Both tools open the disk exclusively, so they refuse a disk that is mounted or in a volume group.
    """
    quoted = shlex.quote(name)  # udev writes other characters than letters as \x2f
    return f"wipefs --all {quoted} && blkdiscard --zeroout {quoted}"


def usage(disk: Disk) -> list[str]:
    """Return the current users of a disk or its partitions; empty if it is unused."""
    found = []
    node = disks.node(disk.number)
    partitions = sorted(path.parent for path in node.glob("*/partition"))
    nodes = {disk.number: node, **{read_text(partition / "dev"): partition for partition in partitions}}
    if partitions:
        found.append(f"partitions: {', '.join(partition.name for partition in partitions)}")
    for place in nodes.values():
        holders = sorted((place / "holders").iterdir()) if (place / "holders").is_dir() else []
        found += [f"held by {read_text(holder / 'dm/name') or holder.name}" for holder in holders]
    for mount in mounts.mounts():
        if mount.number in nodes or _number_of(mount.source) in nodes:
            found.append(f"mounted at {mount.path}")
    for line in read_text(disks.PROC / "swaps").splitlines()[1:]:
        if _number_of(mounts.unescape(line.split()[0])) in nodes:
            found.append("in use as swap space")
    if read_text(node / "dm/uuid").startswith("LVM-"):
        found.append("it is a logical volume itself")
    if read_text(node / "ro") == "1":
        found.append("it is read-only")
    if disk.size == 0:
        found.append("it has no medium (size 0)")
    return found + _exclusive(disk.device) + openers.findings(disk)


def _number_of(source: str) -> str | None:
    """Return major:minor of a path that need not be a device."""
    try:
        return disks.device_number(source) if source.startswith("/") else None
    except OSError:
        return None


def _exclusive(device: str) -> list[str]:
    """Return a finding if the kernel or a program holds a device exclusively (open(2): O_EXCL on block devices)."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return ["in use (opened exclusively)"]
        return [f"it cannot be opened: {error.strerror}"]
    return []
