# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""LVM's state, the wanted state, and their conflicts. Nothing here runs a tool or touches a device."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
from collections.abc import Mapping, Sequence

from ansible.module_utils.slurmstead.storage.disks import OUR_MEMBER_ID, Disk, DiskError, describe, human_size
from ansible.module_utils.slurmstead.storage.filesystems import MINIMUM

TAG = "slurmstead"
"""Tag of volume groups and logical volumes that local_volume created."""

UNFINISHED = f"{TAG}.unfinished="
"""Prefix of the tag of a logical volume whose file system is not complete yet; the file system's UUID follows."""

REPORT = [
    *("lvm", "pvs", "--segments", "--reportformat", "json", "--units", "b", "--nosuffix", "--options"),
    "pv_name,vg_name,vg_uuid,vg_tags,vg_free_count,vg_missing_pv_count,lv_name,lv_tags,lv_size",
]
"""One row per segment of each physical volume, including those without a volume group."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A declared volume; `mode` is that of the root of its file system.

    `image` is the file that contains the file system; if it is empty, that is a logical volume.
    """

    volume_group: str
    logical_volume: str
    filesystem: str
    path: str
    mode: int
    options: tuple[str, ...]
    image: str = ""

    @property
    def name(self) -> str:
        """The name of the logical volume for LVM's tools."""
        return f"{self.volume_group}/{self.logical_volume}"

    @property
    def device(self) -> str:
        """The logical volume's device, or the image."""
        return self.image or f"/dev/{self.name}"


@dataclasses.dataclass(frozen=True)
class LogicalVolume:
    """A logical volume; `size` in bytes."""

    tags: frozenset[str]
    size: int

    @property
    def unfinished(self) -> str | None:
        """UUID of the file system that is being created in it, None when it is complete."""
        return next((tag.removeprefix(UNFINISHED) for tag in self.tags if tag.startswith(UNFINISHED)), None)


@dataclasses.dataclass(frozen=True)
class Group:
    """A volume group; `free` in extents, `members` are its disks' devices, `missing` is the number of missing disks."""

    name: str
    uuid: str
    tags: frozenset[str]
    free: int
    missing: int
    members: tuple[str, ...]
    volumes: Mapping[str, LogicalVolume]


def parse_report(text: str) -> list[Group]:
    """Return the volume groups in the output of REPORT; raises DiskError if the output is malformed."""
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
            row["lv_name"]: LogicalVolume(_tags(row["lv_tags"]), int(row["lv_size"])) for row in rows if row["lv_name"]
        },
    )


def _tags(text: str) -> frozenset[str]:
    """Return the tags in a field of LVM."""
    return frozenset(tag for tag in text.split(",") if tag)


def new_member_id() -> str:
    """Return a new UUID for a physical volume, in LVM's form; after an interruption it identifies ours."""
    letters = OUR_MEMBER_ID + secrets.token_hex(11)
    return re.sub(r"(.{6})(.{4})(.{4})(.{4})(.{4})(.{4})(.{6})", r"\1-\2-\3-\4-\5-\6-\7", letters)


def group_problems(wanted: Wanted, groups: Sequence[Group]) -> list[str]:
    """Return the problems of the volume group with the wanted name that do not depend on the declared disks."""
    name = wanted.volume_group
    same = [group for group in groups if group.name == name]
    if len(same) > 1:
        return [
            f"expected one volume group {name}, found {len(same)} of that name (UUIDs "
            f"{', '.join(group.uuid for group in same)}): rename the one that came on a disk from another machine "
            "(`vgrename UUID NEW_NAME`)"
        ]
    if not same:
        return []
    (group,) = same
    there = ", ".join(group.members) or "none"
    if TAG not in group.tags:
        return [
            f"expected no volume group {name}, or one that Slurmstead made (tag {TAG}), found one without that tag "
            f"over {there}: choose another name for the volume group, or rename that one (`vgrename`)"
        ]
    problems = []
    if group.missing:
        problems.append(
            f"expected all disks of the volume group {name}, {group.missing} of them are missing, present: {there}. "
            f"Connect them again; `pvs` and `vgs {name}` say more. A file system on a lost disk is lost too"
        )
    volume = group.volumes.get(wanted.logical_volume)
    if volume and TAG not in volume.tags:
        problems.append(
            f"expected no logical volume {wanted.name}, or one that Slurmstead made (tag {TAG}), found one without "
            "that tag: rename it (`lvrename`)"
        )
    return problems


def membership_problems(
    wanted: Wanted, group: Group | None, members: Mapping[str, str], disks: Sequence[Disk]
) -> list[str]:
    """Return the conflicts between the declared disks and the group's; `members` maps their numbers to devices."""
    problems = [
        f"{disk.name}: expected each disk once, but {other.name} is the same disk: remove one of the two names"
        for index, disk in enumerate(disks)
        for other in disks[:index]
        if other.number == disk.number
    ]
    declared = {disk.number for disk in disks}
    extra = [device for number, device in members.items() if number not in declared]
    if group and extra:
        problems.append(
            f"expected volume group {group.name} on the declared disks, but it also has {', '.join(extra)}: declare "
            f"that disk again, or remove it by hand (`pvmove {extra[0]} && vgreduce {group.name} {extra[0]}`)"
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
