# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Resolves names of disks, and reads their properties from the kernel and udev."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import subprocess
from pathlib import Path

STABLE_DIRECTORIES = (
    "/dev/disk/by-id",
    "/dev/disk/by-path",
    "/dev/disk/by-partuuid",
    "/dev/disk/by-uuid",
    "/dev/mapper",
)

OUR_MEMBER_ID = "slurmstead"
"""Prefix of the UUIDs of our LVM physical volumes."""

DEV = Path("/dev")
SYS = Path("/sys")
PROC = Path("/proc")
UDEV = Path("/run/udev/data")

ENVIRONMENT = {
    "LC_ALL": "C",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    # Tools inherit the lock of local_volume on purpose; lvm(8) would warn about unexpected open files.
    "LVM_SUPPRESS_FD_WARNINGS": "1",
}


class DiskError(Exception):
    """A disk cannot be resolved or inspected; the text says what was expected, what was seen and what to do."""


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk or a partition.

    `name` is as declared, `number` as in /sys/dev/block (major:minor), `size` and `sector` are in bytes.
    """

    name: str
    device: str
    number: str
    size: int
    sector: int
    model: str
    serial: str


def run(command: list[str], deadline: float, inherit: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a tool with an empty standard input, so that no question is answered with yes; `deadline` in seconds.

    `inherit` are files that the tool keeps open. Raises DiskError if the tool is missing or exceeds the deadline.
    """
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=ENVIRONMENT,
            timeout=deadline,
            pass_fds=inherit,
            check=False,
        )
    except FileNotFoundError as error:
        raise DiskError(f"the tool {command[0]} is missing: install the role's packages") from error
    except subprocess.TimeoutExpired as error:
        raise DiskError(
            f"expected `{' '.join(command)}` to end within {deadline:.0f} s, it did not: "
            "look for errors of the disk in the kernel's log (journalctl --dmesg)"
        ) from error


def read_text(path: Path) -> str:
    """Return a small file of /sys or /run without surrounding white space; empty if it does not exist."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def human_size(size: int) -> str:
    """Return a size in bytes in readable units.

    >>> human_size(1073741824), human_size(500107862016)
    ('1.0 GiB', '465.8 GiB')
    """
    value = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def device_number(path: str | Path) -> str | None:
    """Return major:minor of a block device, None if the path is not one; raises OSError if it does not exist."""
    status = os.stat(path)
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def stable_names(device: str) -> list[str]:
    """Return the /dev/disk/by-id names of a kernel device, or, if it has none, those in by-path."""
    for directory in (DEV / "disk/by-id", DEV / "disk/by-path"):
        links = (link for link in sorted(directory.glob("*")) if not link.name.startswith("lvm-pv-uuid-"))
        if names := [str(link) for link in links if os.path.realpath(link) == device]:
            return names
    return []


def is_stable(name: str) -> bool:
    """Say whether a name will refer to the same disk after the next boot."""
    directory, _, entry = name.rpartition("/")
    return directory in STABLE_DIRECTORIES and entry not in ("", ".", "..", "control")


def check_name(name: str) -> None:
    """Raise DiskError unless a name is stable."""
    if is_stable(name):
        return
    known = stable_names(os.path.realpath(name)) if name.startswith("/dev/") else []
    have = f"write one of its names: {', '.join(known)}" if known else "`ls -l /dev/disk/by-id` there shows the names"
    raise DiskError(
        f"{name}: expected a name that stays with the disk (/dev/disk/by-id/…, by-path, by-partuuid, by-uuid, "
        f"/dev/mapper/…), but this one can name a different disk after a reboot; {have}"
    )


def resolve(name: str) -> Disk:
    """Return the disk to which a stable name refers.

    Raises DiskError if the name is not stable, does not exist, or is not a block device.
    """
    check_name(name)
    device = os.path.realpath(name)
    try:
        number = device_number(device)
    except OSError as error:
        raise DiskError(
            f"{name}: expected a disk, but this machine has none of that name; "
            "connect it, or correct the name (`ls -l /dev/disk/by-id` lists valid names)"
        ) from error
    if number is None:
        raise DiskError(f"{name}: expected a block device, but {device} is not one; correct the name")
    return measure(name, device, number)


def node(number: str) -> Path:
    """Return the directory of a device in /sys."""
    return (SYS / "dev/block" / number).resolve()


def measure(name: str, device: str, number: str) -> Disk:
    """Return a device with its properties from the kernel and udev; a partition has model and serial of its disk."""
    here = node(number)
    whole = here.parent if (here / "partition").exists() else here
    properties = dict(re.findall(r"^E:(ID_MODEL|ID_SERIAL_SHORT)=(.*)$", read_text(UDEV / f"b{number}"), re.MULTILINE))
    model = read_text(whole / "device/model") or properties.get("ID_MODEL") or read_text(whole / "dm/name")
    serial = read_text(whole / "device/serial") or properties.get("ID_SERIAL_SHORT") or read_text(whole / "serial")
    return Disk(
        name=name,
        device=device,
        number=number,
        size=int(read_text(here / "size") or 0) * 512,  # in units of 512 bytes, whatever the disk's sectors are
        sector=int(read_text(whole / "queue/logical_block_size") or 512),
        model=model,
        serial=serial,
    )


def describe(disk: Disk) -> str:
    """Return a disk as messages name it: name, kernel device, model, serial, size."""
    model = disk.model or "model unknown"
    serial = f", serial {disk.serial}" if disk.serial else ""
    return f"{disk.name} ({disk.device}, {model}{serial}, {human_size(disk.size)})"
