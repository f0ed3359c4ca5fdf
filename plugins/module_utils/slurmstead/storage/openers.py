# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Which processes and drivers have a disk open. open(2) with O_EXCL fails only if another opener used O_EXCL too."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Set
from pathlib import Path

from ansible.module_utils.slurmstead.storage import disks
from ansible.module_utils.slurmstead.storage.disks import read_text

PATIENCE = 5.0
"""Seconds to wait for programs that only look at a disk (udev does, after each change)."""

REMOTE = re.compile(r"nfs|cifs|smb|9p|ceph|fuse|lustre|afs|gluster|beegfs|gpfs")
"""Beginnings of the types of file systems on which stat(2) can hang."""

BACKING = (
    "block/loop*/loop/backing_file",
    "kernel/config/nvmet/subsystems/*/namespaces/*/device_path",
    "kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file",
)
"""Files below /sys with the path of a file or device that a driver of the kernel has open, without O_EXCL."""


def numbers(disk: disks.Disk) -> set[str]:
    """Return the numbers of all devices that give access to a disk, as `identity` returns them.

    These are the disk, its partitions, the whole disk if it is a partition, and the character devices of SCSI and NVMe.
    """
    node = disks.node(disk.number)
    whole = node.parent if (node / "partition").exists() else node
    parts = (path.parent for path in whole.glob("*/partition")) if whole == node else [node]
    generic = [
        *whole.glob("device/scsi_generic/*/dev"),
        disks.SYS / "class/nvme-generic" / whole.name.replace("nvme", "ng", 1) / "dev",
    ]
    blocks = {disk.number, read_text(whole / "dev"), *(read_text(part / "dev") for part in parts)}
    return {f"block {number}" for number in blocks} | {f"character {read_text(path)}" for path in generic}


def identity(path: Path) -> str | None:
    """Return "block major:minor" or "character major:minor" of an open file; None if it is not a device or is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    kinds = {stat.S_IFBLK: "block", stat.S_IFCHR: "character"}
    kind = kinds.get(stat.S_IFMT(status.st_mode))
    return f"{kind} {os.major(status.st_rdev)}:{os.minor(status.st_rdev)}" if kind else None


def findings(disk: disks.Disk) -> list[str]:
    """Return who has a disk open; waits up to PATIENCE seconds until there is no one."""
    wanted = numbers(disk)
    deadline = time.monotonic() + PATIENCE
    while found := _processes(wanted) + _drivers(wanted):
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return found


def _processes(wanted: Set[str]) -> list[str]:
    found = []
    for process in sorted(disks.PROC.glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            files = list((process / "fd").iterdir())
        except PermissionError:
            found.append(f"the open files of process {process.name} cannot be read")
            continue
        except OSError:  # it has ended
            continue
        remote = {
            line.split(" ")[0] for line in _lines(process / "mountinfo") if REMOTE.match(line.partition(" - ")[2])
        }
        local = [file for file in files if not remote or _mount(process, file) not in remote]
        if any(identity(file) in wanted for file in local):
            found.append(f"open in {read_text(process / 'comm')} (process {process.name})")
    return found


def _lines(path: Path) -> list[str]:
    return read_text(path).split("\n")


def _mount(process: Path, file: Path) -> str:
    """Return the ID of the mount on which an open file is (proc_pid_fdinfo(5)); empty if it was closed."""
    fields = (line.partition(":") for line in _lines(process / "fdinfo" / file.name))
    return next((value.strip() for name, _, value in fields if name == "mnt_id"), "")


def _drivers(wanted: Set[str]) -> list[str]:
    paths = [path for pattern in BACKING for path in sorted(disks.SYS.glob(pattern))]
    return [
        f"open in the kernel ({path.relative_to(disks.SYS)})"
        for path in paths
        if (backing := read_text(path)).startswith("/") and identity(Path(backing)) in wanted
    ]
