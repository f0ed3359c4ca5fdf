# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Which disk a name means, what it is, and everything on it that makes it not blank.

Nothing here writes: devices are opened read-only, and blkid(8) and wipefs(8) are called in modes that only look. A
close after a read-only open raises no udev event, so looking at a disk has no effect either.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

EDGE = 4 * 2**20
"""Bytes read at either end of a disk: where partition tables, boot loaders and the metadata of all formats begin."""

STABLE_DIRECTORIES = (
    "/dev/disk/by-id",
    "/dev/disk/by-path",
    "/dev/disk/by-partuuid",
    "/dev/disk/by-uuid",
    "/dev/mapper",
)

OUR_MEMBER_ID = "slurmstead"
"""What the UUIDs of the LVM physical volumes that we make begin with."""

DEV = Path("/dev")
SYS = Path("/sys")
PROC = Path("/proc")
UDEV = Path("/run/udev/data")

ENVIRONMENT = {
    "LC_ALL": "C",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    # A tool inherits the lock of local_volume on purpose; lvm(8) complains about every open file it did not expect.
    "LVM_SUPPRESS_FD_WARNINGS": "1",
}

BLKID_NOTHING, BLKID_AMBIVALENT = 2, 8  # blkid(8), EXIT STATUS


class DiskError(Exception):
    """A disk cannot be named, found or judged; the text says what was expected, what was seen and what to do."""


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
    """Run a tool with nothing on its standard input, so that it cannot be told yes; `deadline` in seconds.

    `inherit` are files that the tool keeps open. Raises DiskError when the tool is missing or exceeds the deadline.
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
        raise DiskError(f"expected the tool {command[0]}, it is not there: install the role's packages") from error
    except subprocess.TimeoutExpired as error:
        raise DiskError(
            f"expected `{' '.join(command)}` to end within {deadline:.0f} s, it did not: "
            "look for errors of the disk in the kernel's log (journalctl --dmesg)"
        ) from error


def read_text(path: Path) -> str:
    """Return a small file of /sys or /run without the white space around it; empty when it is not there."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def human_size(size: int) -> str:
    """Return a size in bytes for people.

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
    """Return major:minor of a block device, None if the path is none; raises OSError when it is not there."""
    status = os.stat(path)
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def stable_names(device: str) -> list[str]:
    """Return the /dev/disk/by-id names of a kernel device, or, if it has none, those in by-path."""
    for directory in (DEV / "disk/by-id", DEV / "disk/by-path"):
        links = sorted(directory.iterdir()) if directory.is_dir() else []
        links = [link for link in links if not link.name.startswith("lvm-pv-uuid-")]
        names = [str(link) for link in links if os.path.realpath(link) == device]
        if names:
            return names
    return []


def check_name(name: str) -> None:
    """Raise DiskError unless a name is of the kind that means the same disk after the next boot."""
    directory, _, entry = name.rpartition("/")
    if directory in STABLE_DIRECTORIES and entry not in ("", ".", "..", "control"):
        return
    known = stable_names(os.path.realpath(name)) if name.startswith("/dev/") else []
    have = f"write one of its names: {', '.join(known)}" if known else "`ls -l /dev/disk/by-id` there shows the names"
    raise DiskError(
        f"{name}: expected a name that stays with the disk (/dev/disk/by-id/…, by-path, by-partuuid, by-uuid, "
        f"/dev/mapper/…), this one can mean another disk after the next boot; {have}"
    )


def resolve(name: str) -> Disk:
    """Return the disk that a stable name means now.

    Raises DiskError for a name that is not stable, that nothing has, or that is not a block device.
    """
    check_name(name)
    device = os.path.realpath(name)
    try:
        number = device_number(device)
    except OSError as error:
        raise DiskError(
            f"{name}: expected a disk, this machine has none of that name; "
            "connect it, or correct the name (`ls -l /dev/disk/by-id` shows those it has)"
        ) from error
    if number is None:
        raise DiskError(f"{name}: expected a block device, {device} is none; correct the name")
    return measure(name, device, number)


def _node(number: str) -> Path:
    """Return the directory of a device in /sys."""
    return (SYS / "dev/block" / number).resolve()


def measure(name: str, device: str, number: str) -> Disk:
    """Return a device with what the kernel and udev say about it; a partition has model and serial of its disk."""
    node = _node(number)
    whole = node.parent if (node / "partition").exists() else node
    properties = dict(re.findall(r"^E:(ID_MODEL|ID_SERIAL_SHORT)=(.*)$", read_text(UDEV / f"b{number}"), re.MULTILINE))
    model = read_text(whole / "device/model") or properties.get("ID_MODEL") or read_text(whole / "dm/name")
    serial = read_text(whole / "device/serial") or properties.get("ID_SERIAL_SHORT") or read_text(whole / "serial")
    return Disk(
        name=name,
        device=device,
        number=number,
        size=int(read_text(node / "size") or 0) * 512,  # in units of 512 bytes, whatever the disk's sectors are
        sector=int(read_text(whole / "queue/logical_block_size") or 512),
        model=model,
        serial=serial,
    )


def describe(disk: Disk) -> str:
    """Return a disk as messages name it: name, kernel device, model, serial, size."""
    model = disk.model or "model unknown"
    serial = f", serial {disk.serial}" if disk.serial else ""
    return f"{disk.name} ({disk.device}, {model}{serial}, {human_size(disk.size)})"


def probe(path: str) -> dict[str, str]:
    """Return what libblkid finds on a device by looking at it, not in its cache: TYPE, UUID, PTTYPE …

    Empty when nothing is there; signatures that contradict each other are {"TYPE": "ambivalent"}.
    Raises DiskError when blkid cannot say.
    """
    done = run(["blkid", "-p", "-o", "export", path], deadline=60)
    if done.returncode == BLKID_AMBIVALENT:
        return {"TYPE": "ambivalent"}
    if done.returncode not in (0, BLKID_NOTHING):
        raise DiskError(f"{path}: expected blkid to look at it, it failed ({done.returncode}): {done.stderr.strip()}")
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    # PART_ENTRY_* says where a partition stands in its disk, which is no content.
    return {key: value for key, _, value in pairs if key != "DEVNAME" and not key.startswith("PART_ENTRY_")}


def signatures(path: str) -> list[str]:
    """Return the signatures on a device or in an image, by blkid and by wipefs.

    wipefs lists all of them, and sees the backup of a partition table whose first copy is gone.
    Raises DiskError when one of the two cannot say.
    """
    found = probe(path)
    labels = {"PTTYPE": "partition table", "TYPE": "signature"}
    names = [f"{label} {found[key]}" for key, label in labels.items() if key in found]
    if found and not names:
        names = [f"something that blkid calls {' '.join(f'{key}={value}' for key, value in sorted(found.items()))}"]
    done = run(["wipefs", "--no-act", "--noheadings", "--output", "TYPE,OFFSET", path], deadline=60)
    if done.returncode != 0:
        raise DiskError(f"{path}: expected wipefs to look at it, it failed ({done.returncode}): {done.stderr.strip()}")
    places: dict[str, list[int]] = {}
    for line in done.stdout.splitlines():
        if line.strip():
            kind, offset = line.split()
            places.setdefault(kind, []).append(int(offset, 16))
    for kind, offsets in places.items():
        more = f" and {len(offsets) - 1} more" if len(offsets) > 1 else ""
        names.append(f"{kind} at byte {min(offsets)}{more}")
    return names


def read_edges(path: str, size: int) -> tuple[bytes, bytes]:
    """Return the first EDGE bytes, and of what follows the last EDGE bytes; raises OSError."""
    with open(path, "rb", buffering=0) as file:
        edges = []
        for offset in (0, max(EDGE, size - EDGE)):
            file.seek(offset)
            want = max(0, min(EDGE, size - offset))
            data = b""
            while len(data) < want and (piece := file.read(want - len(data))):
                data += piece
            if len(data) != want:
                raise OSError(errno.EIO, f"only {len(data)} of {want} bytes at byte {offset} can be read")
            edges.append(data)
    return edges[0], edges[1]


def is_zero(data: bytes) -> bool:
    """Say whether there is nothing but zeros."""
    return data.count(0) == len(data)


LABEL = slice(512, 1024)
HEADER = slice(4096, 4608)
TEXT = slice(4608, 2**20)
USED = slice(140, 144)
"""In the label: the flags of the physical volume's extension header; the only one that LVM sets is PV_EXT_USED."""


def unfinished_member(head: bytes) -> str | None:
    """Say whether the first bytes of a disk hold nothing but a physical volume that we began to make on a blank disk.

    "label": it is a physical volume, not in a volume group yet. "header": pvcreate was killed before its last write.
    "used": vgcreate or vgextend were killed when they had marked it as used and no group had it yet. None: all else.

    Layout: LVM2 lib/format_text/layout.h and lib/label/label.c. pvcreate writes the header, then the label; vgcreate
    marks the label, then writes the text, then lets the header point to it.
    """
    label, header, text = head[LABEL], head[HEADER], head[TEXT]
    rest = head[: LABEL.start] + head[LABEL.stop : HEADER.start] + head[TEXT.stop :]
    if not is_zero(rest) or header[4:20] != b" LVM2 x[5A%r0N*>" or not is_zero(header[40:64]):
        return None
    if is_zero(label):
        return "header" if is_zero(text) else None
    ours = label[:8] == b"LABELONE" and label[24:32] == b"LVM2 001" and label[32:64].startswith(OUR_MEMBER_ID.encode())
    if not ours:
        return None
    return "label" if is_zero(label[USED]) else "used"


def content(path: str, size: int) -> list[str]:
    """Return what stands on a device or in an image of `size` bytes; empty when it is blank.

    A physical volume that we began and did not finish counts as nothing. Raises DiskError when it cannot be judged.
    """
    try:
        head, tail = read_edges(path, size)
    except OSError as error:
        return [f"it cannot be read: {error.strerror or error}"]
    unfinished = unfinished_member(head)
    found = signatures(path)
    if unfinished:
        found = [name for name in found if "LVM2_member" not in name]
    elif not is_zero(head):
        found.append(f"data in the first {human_size(len(head))}")
    if not is_zero(tail):
        found.append(f"data in the last {human_size(len(tail))}")
    return found


def partitions(number: str) -> Iterator[Path]:
    """Yield the directories in /sys of the partitions that the kernel knows on a disk."""
    node = _node(number)
    yield from sorted(child.parent for child in node.glob("*/partition"))


def unescape(field: str) -> str:
    r"""Return a field of mountinfo as it was before the kernel escaped white space.

    >>> unescape("/mnt/a\\040b")
    '/mnt/a b'
    """
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


@dataclasses.dataclass(frozen=True)
class Mount:
    """A mounted file system; `number` is major:minor of its device, `source` what was mounted."""

    number: str
    path: str
    filesystem: str
    source: str


def mounts() -> list[Mount]:
    """Return what is mounted in this namespace, the topmost last (proc_pid_mountinfo(5))."""
    result = []
    for line in (PROC / "self/mountinfo").read_text(errors="replace").splitlines():
        fields, _, rest = line.partition(" - ")
        _, _, number, _, path, *_ = fields.split(" ")
        filesystem, source, *_ = rest.split(" ")
        result.append(Mount(number, unescape(path), filesystem, unescape(source)))
    return result


def _number_of(source: str) -> str | None:
    """Return major:minor of a path that need not be a device."""
    try:
        return device_number(source) if source.startswith("/") else None
    except OSError:
        return None


def usage(disk: Disk) -> list[str]:
    """Return who uses a disk or one of its partitions now; empty when nobody does."""
    found = []
    node = _node(disk.number)
    nodes = {disk.number: node, **{read_text(child / "dev"): child for child in partitions(disk.number)}}
    if len(nodes) > 1:
        found.append(f"partitions: {', '.join(child.name for child in list(nodes.values())[1:])}")
    for child in nodes.values():
        holders = sorted((child / "holders").iterdir()) if (child / "holders").is_dir() else []
        found += [f"held by {read_text(holder / 'dm/name') or holder.name}" for holder in holders]
    for mount in mounts():
        if mount.number in nodes or _number_of(mount.source) in nodes:
            found.append(f"mounted at {mount.path}")
    for line in read_text(PROC / "swaps").splitlines()[1:]:
        if _number_of(unescape(line.split()[0])) in nodes:
            found.append("in use as swap space")
    if read_text(node / "dm/uuid").startswith("LVM-"):
        found.append("it is a logical volume itself")
    if read_text(node / "ro") == "1":
        found.append("it is read-only")
    if disk.size == 0:
        found.append("it has no medium (size 0)")
    return found + _exclusive(disk.device)


def _exclusive(device: str) -> list[str]:
    """Return a finding if the kernel or a program holds a device exclusively (open(2): O_EXCL on block devices)."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return ["in use (opened exclusively)"]
        return [f"it cannot be opened: {error.strerror}"]
    return []


def findings(disk: Disk) -> list[str]:
    """Return everything that makes a disk not blank; empty when it may be written.

    What cannot be judged is a finding: nothing here raises for a disk that exists.
    """
    found = usage(disk)
    if disk.size == 0:
        return found
    try:
        found += content(disk.device, disk.size)
    except DiskError as error:
        found.append(str(error))
    return list(dict.fromkeys(found))


def refusal(disk: Disk, found: list[str]) -> str:
    """Return the message for a disk that is not blank."""
    return (
        f"{describe(disk)}: expected a blank disk, found {'; '.join(found)}. Nothing was written to it. Take it "
        f"out of the inventory, or, if nobody needs what is on it, erase all of it by hand on that machine: "
        f"`wipefs --all {disk.name} && blkdiscard --zeroout {disk.name}`"
    )
