# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What LVM says, what is wanted, and what is wrong between the two. Nothing here runs a tool or touches a device."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import string
from collections.abc import Mapping, Sequence

from ansible.module_utils.slurmstead.storage.disks import OUR_MEMBER_ID, Disk, DiskError, describe, human_size

TAG = "slurmstead"
"""On a volume group and a logical volume that local_volume made."""

UNFINISHED = f"{TAG}.unfinished="
"""Begin of the tag of a logical volume whose file system is not complete yet; the file system's UUID follows."""

REPORT = [
    *("lvm", "pvs", "--segments", "--reportformat", "json", "--units", "b", "--nosuffix", "--options"),
    "pv_name,vg_name,vg_uuid,vg_tags,vg_free_count,vg_missing_pv_count,lv_name,lv_tags,lv_size",
]
"""One row per segment of each physical volume; those without a volume group are there too."""

MINIMUM = {"ext4": 64 * 2**20, "xfs": 320 * 2**20}
"""Bytes of disk that a file system needs at least (mkfs.xfs(8): 300 MiB, and LVM takes some)."""

SLACK = 16 * 2**20
"""Bytes at the end that a file system may leave unused: it cannot use a last group or extent that is too short."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A volume as declared; `mode` of the root of its file system."""

    volume_group: str
    logical_volume: str
    filesystem: str
    path: str
    mode: int
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        """The logical volume as LVM's tools name it."""
        return f"{self.volume_group}/{self.logical_volume}"

    @property
    def device(self) -> str:
        """The logical volume's device."""
        return f"/dev/{self.name}"


@dataclasses.dataclass(frozen=True)
class LogicalVolume:
    """A logical volume; `size` in bytes."""

    name: str
    tags: frozenset[str]
    size: int

    @property
    def unfinished(self) -> str | None:
        """UUID of the file system that is being made in it, None when that is done."""
        return next((tag.removeprefix(UNFINISHED) for tag in self.tags if tag.startswith(UNFINISHED)), None)


@dataclasses.dataclass(frozen=True)
class Group:
    """A volume group; `free` in extents, `members` the devices of its disks, `missing` how many are not there."""

    name: str
    uuid: str
    tags: frozenset[str]
    free: int
    missing: int
    members: tuple[str, ...]
    volumes: Mapping[str, LogicalVolume]


def parse_report(text: str) -> list[Group]:
    """Return the volume groups in the output of REPORT; raises DiskError when it is not such output."""
    try:
        rows = [row for report in json.loads(text)["report"] for row in report["pvseg"] if row["vg_name"]]
        uuids = sorted({row["vg_uuid"] for row in rows})
        return [_group([row for row in rows if row["vg_uuid"] == uuid]) for uuid in uuids]
    except (ValueError, KeyError, TypeError) as error:
        raise DiskError(f"expected the report of `{' '.join(REPORT[:2])}`, found {text[:200]!r} ({error!r})") from error


def _group(rows: Sequence[Mapping[str, str]]) -> Group:
    """Return the volume group that the rows of one vg_uuid describe."""
    first = rows[0]
    return Group(
        name=first["vg_name"],
        uuid=first["vg_uuid"],
        tags=_tags(first["vg_tags"]),
        free=int(first["vg_free_count"]),
        missing=int(first["vg_missing_pv_count"]),
        members=tuple(dict.fromkeys(row["pv_name"] for row in rows if row["pv_name"].startswith("/"))),
        volumes={
            row["lv_name"]: LogicalVolume(row["lv_name"], _tags(row["lv_tags"]), int(row["lv_size"]))
            for row in rows
            if row["lv_name"]
        },
    )


def _tags(text: str) -> frozenset[str]:
    """Return the tags in a field of LVM."""
    return frozenset(tag for tag in text.split(",") if tag)


def new_member_id() -> str:
    """Return a new UUID for a physical volume, in LVM's form, by which we know ours again after an interruption."""
    alphabet = string.ascii_letters + string.digits
    letters = OUR_MEMBER_ID + "".join(secrets.choice(alphabet) for _ in range(32 - len(OUR_MEMBER_ID)))
    return re.sub(r"(.{6})(.{4})(.{4})(.{4})(.{4})(.{4})(.{6})", r"\1-\2-\3-\4-\5-\6-\7", letters)


def group_problems(wanted: Wanted, groups: Sequence[Group]) -> list[str]:
    """Return what is wrong with the volume group of the wanted name, whatever disks are declared."""
    name = wanted.volume_group
    same = [group for group in groups if group.name == name]
    if len(same) > 1:
        return [
            f"expected one volume group {name}, found {len(same)} of that name (UUIDs "
            f"{', '.join(group.uuid for group in same)}): rename the one that came with a disk of another machine "
            "(`vgrename UUID NEW_NAME`)"
        ]
    problems = []
    for group in same:
        if TAG not in group.tags:
            problems.append(
                f"expected no volume group {name}, or one that Slurmstead made (tag {TAG}), found one of somebody else "
                f"over {', '.join(group.members)}: choose another name for ours, or rename that one (`vgrename`)"
            )
            continue
        if group.missing:
            problems.append(
                f"expected all disks of the volume group {name}, {group.missing} of them not there, present "
                f"{', '.join(group.members) or 'none'}: connect it again; `pvs` and `vgs {name}` say more. "
                "If it is lost for good, so is the file system over it"
            )
        volume = group.volumes.get(wanted.logical_volume)
        if volume and TAG not in volume.tags:
            problems.append(
                f"expected no logical volume {wanted.name}, or one that Slurmstead made (tag {TAG}), found one of "
                "somebody else: rename it (`lvrename`)"
            )
    return problems


def membership_problems(
    wanted: Wanted, group: Group | None, members: Mapping[str, str], disks: Sequence[Disk]
) -> list[str]:
    """Return what is wrong between the declared disks and the group's; `members` maps their numbers to devices."""
    problems = []
    for index, disk in enumerate(disks):
        for other in disks[:index]:
            if other.number == disk.number:
                problems.append(f"{disk.name}: expected each disk once, it is also {other.name}: take one name out")
    declared = {disk.number for disk in disks}
    extra = [device for number, device in members.items() if number not in declared]
    if group and extra:
        problems.append(
            f"expected the volume group {group.name} over the declared disks, it also has {', '.join(extra)}: declare "
            f"that disk again, or take it out by hand (`pvmove {extra[0]} && vgreduce {group.name} {extra[0]}`)"
        )
    sectors = {disk.sector for disk in disks}
    if len(sectors) > 1:
        seen = "; ".join(f"{describe(disk)}: {disk.sector} bytes" for disk in disks)
        problems.append(
            f"expected disks with sectors of one size, found {seen}: LVM does not mix them in one volume group"
        )
    size = sum(disk.size for disk in disks)
    if not group and size < MINIMUM[wanted.filesystem]:
        problems.append(
            f"expected at least {human_size(MINIMUM[wanted.filesystem])} for {wanted.filesystem}, "
            f"found {human_size(size)} on {'; '.join(map(describe, disks))}: declare a larger disk"
        )
    return problems


def filesystem_step(wanted: Wanted, found: Mapping[str, str], unfinished: str | None) -> str:
    """Say what to do with the file system of our logical volume: "keep" it, "make" it, or "inspect" it first.

    `found` is what libblkid says (see disks.probe), `unfinished` as in LogicalVolume. A file system is made only in a
    volume that has carried the mark `unfinished` since it was made, and the mark goes when its file system is complete.
    Raises DiskError when something else is there.
    """
    kind = found.get("TYPE") or found.get("PTTYPE")
    if kind == wanted.filesystem:
        return "inspect" if unfinished and found.get("UUID") == unfinished else "keep"
    if unfinished and not found:
        return "make"
    raise DiskError(
        f"{wanted.device}: expected the file system {wanted.filesystem}, found {kind or 'nothing that libblkid knows'}"
        ". Nothing was written to it. Declare what is there, or, if nobody needs it, remove it by hand "
        f"(`wipefs --all {wanted.device} && lvremove {wanted.name}`) and it is made anew"
    )


def was_mounted(filesystem: str, head: bytes) -> bool:
    """Say whether a file system was ever mounted, by the first 4096 bytes of its device.

    ext4: s_mtime of the superblock at 1024 (Documentation/filesystems/ext4/super.rst). XFS: sb_lsn (xfs_format.h),
    which mkfs.xfs leaves 0 and the first unmount sets.
    """
    return any(head[1024 + 0x2C : 1024 + 0x30] if filesystem == "ext4" else head[240:248])


def is_in_progress(filesystem: str, head: bytes) -> bool:
    """Say whether mkfs.xfs was killed before its last write (sb_inprogress); mkfs.ext4 has no such mark."""
    return filesystem == "xfs" and head[126] != 0


def ext4_size(head: bytes) -> int:
    """Return the size in bytes of the ext4 file system whose device begins with `head` (at least 4096 bytes)."""
    low, block, high = (int.from_bytes(head[1024 + at : 1028 + at], "little") for at in (0x4, 0x18, 0x150))
    return ((high << 32) + low) << (10 + block)


def unit_name(path: str, suffix: str) -> str:
    r"""Return the name that systemd gives to a path (systemd-escape(1), --path).

    >>> unit_name("/srv/my-share", "mount")
    'srv-my\\x2dshare.mount'
    """
    text = path.strip("/").replace("//", "/")
    escaped = "".join(
        "-" if letter == "/"
        else letter if letter in string.ascii_letters + string.digits + ":_" or (letter == "." and index)
        else "".join(f"\\x{byte:02x}" for byte in letter.encode())
        for index, letter in enumerate(text)
    )  # fmt: skip
    return f"{escaped}.{suffix}"


def unit_files(wanted: Wanted) -> dict[str, str]:
    """Return the files below /etc/systemd/system, by name, that mount the volume at boot.

    The target wants the mount and does not require it, and the device is waited for briefly, so that a machine whose
    disk is gone still boots. x-systemd.device-timeout= works in fstab only (systemd.mount(5)), hence the drop-in. The
    device wants the mount, too, so that a disk that takes longer is mounted when it comes.
    """
    mount = unit_name(wanted.path, "mount")
    check = f"systemd-fsck@{unit_name(wanted.device, 'service')}"
    fsck = f"Requires={check}\nAfter={check}\n" if wanted.filesystem == "ext4" else ""
    return {
        mount: (
            "# Written by Slurmstead (local_volume); what is changed here is overwritten.\n"
            f"[Unit]\nDescription=Volume {wanted.name}\n{fsck}\n"
            f"[Mount]\nWhat={wanted.device}\nWhere={wanted.path}\nType={wanted.filesystem}\n"
            f"Options={','.join(wanted.options) or 'defaults'}\n\n"
            "[Install]\nWantedBy=local-fs.target\n"
        ),
        f"{unit_name(wanted.device, 'device')}.d/slurmstead.conf": (
            f"[Unit]\nJobRunningTimeoutSec=30s\nWants={mount}\n"
        ),
    }
