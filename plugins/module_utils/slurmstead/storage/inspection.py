# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Inspects a volume on this machine, and collects everything that prevents its creation. Changes nothing."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

from ansible.module_utils.slurmstead.storage import blank, content, disks, filesystems, images, mounts, share, units
from ansible.module_utils.slurmstead.storage.disks import Disk, DiskError
from ansible.module_utils.slurmstead.storage.volumes import (
    REPORT,
    Group,
    LogicalVolume,
    Wanted,
    group_problems,
    membership_problems,
    parse_report,
)

FSTAB = Path("/etc/fstab")

TOOL_DEADLINE = 300
"""Timeout for tools of LVM and systemd in seconds."""


class Inspection:
    """The current state of a volume on this machine, and the `problems` that prevent the wanted state.

    `members` are the disks of our volume group: device by number. `inherit` are files that tools keep open.
    `image_bytes` is the size that the image must have, 0 without one.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.problems: list[str] = []
        self.disks: list[Disk] = []
        self.groups: list[Group] = []
        self.members: dict[str, str] = {}
        self.declared = False
        self.image_bytes = 0
        self.inherit: tuple[int, ...] = ()

    def look(self, names: list[str], inherit: tuple[int, ...], image_size: str = "") -> None:
        """Resolve the declared names of disks, and collect all problems.

        :param image_size: size of an image that is used without disks (see images.FORM); empty for a directory
        """
        self.declared, self.inherit = bool(names), inherit
        if image_size and not names:
            self.choose_image(image_size)
        for name in names:
            try:
                self.disks.append(disks.resolve(name))
            except DiskError as error:
                self.problems.append(str(error))
        if names:
            self.read_groups()
        self.find_problems()

    def choose_image(self, size: str) -> None:
        """Use an image if there is one, or if the directory is new; a directory with files stays one."""
        image = images.path(self.wanted.path)
        if not image.exists() and not self.is_new():
            return
        self.wanted = dataclasses.replace(self.wanted, image=str(image))
        present = image.stat().st_size if image.exists() else None
        part = images.part(image)
        left = part.stat().st_blocks * 512 if part.exists() else 0
        try:
            free = images.free_bytes(image.parent) + left
            self.image_bytes = images.wanted_bytes(size, present, free, self.wanted.filesystem)
        except DiskError as error:
            self.problems.append(f"{image}: {error}")

    def is_new(self) -> bool:
        """Say whether nothing is in the directory, mounted there, or exported from there."""
        path = self.wanted.path
        used = share.holds_data(path) or share.original(path) or share.exported() == path
        return not (used or self.mount or self.unit.exists() or images.is_in_fstab(path, disks.read_text(FSTAB)))

    def run(self, command: list[str], deadline: float = TOOL_DEADLINE) -> str:
        """Run a tool that must succeed and return its output."""
        done = disks.run(command, deadline, self.inherit)
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise DiskError(f"expected `{' '.join(command)}` to succeed, it exited with {done.returncode}: {said}")
        return done.stdout

    def read_groups(self) -> None:
        """Ask LVM for its volume groups. If LVM is not installed yet, there are no groups of ours."""
        if any(os.access(f"{directory}/lvm", os.X_OK) for directory in disks.ENVIRONMENT["PATH"].split(":")):
            self.groups = parse_report(self.run(REPORT))
        members = self.group.members if self.group else ()
        self.members = {disks.device_number(member) or member: member for member in members}

    @property
    def group(self) -> Group | None:
        """Our volume group."""
        return next((group for group in self.groups if group.name == self.wanted.volume_group), None)

    @property
    def volume(self) -> LogicalVolume | None:
        """Our logical volume."""
        return self.group.volumes.get(self.wanted.logical_volume) if self.group else None

    @property
    def number(self) -> str | None:
        """The device number of our logical volume, None if it is not active."""
        try:
            number = disks.device_number(self.wanted.device)
        except OSError:
            return None
        seen = disks.read_text(disks.SYS / "dev/block" / str(number) / "dm/uuid")
        if not self.group or not seen.startswith(f"LVM-{self.group.uuid.replace('-', '')}"):
            raise DiskError(
                f"expected {self.wanted.device} to be the logical volume {self.wanted.name}, it is {seen or number}"
            )
        return number

    @property
    def mount(self) -> mounts.Mount | None:
        """What is mounted at the path."""
        return next((mount for mount in reversed(mounts.mounts()) if mount.path == self.wanted.path), None)

    def is_ours(self, mount: mounts.Mount) -> bool:
        """Say whether a mount is that of our logical volume or image."""
        if self.wanted.image:
            return disks.read_text(disks.SYS / "dev/block" / mount.number / "loop/backing_file") == self.wanted.image
        return mount.number == (self.number if self.volume else None)

    @property
    def unit(self) -> Path:
        """The file of the mount unit."""
        return units.UNITS / f"{units.escape(self.wanted.path)}.mount"

    def find_problems(self) -> None:
        """Collect all problems that prevent changes."""
        path = self.wanted.path
        if os.path.lexists(path) and not os.path.isdir(path):
            self.problems.append(f"{path}: expected a directory or nothing, found a file: move it away")
        if self.wanted.image:
            self.problems += self.mount_problems()
            return
        if not self.declared:
            if self.unit.exists() and units.OLD not in disks.read_text(self.unit):
                self.problems.append(
                    f"expected disks for {path}, none is declared, and {self.unit} mounts the volume that was "
                    f"made for it earlier: declare its disks, or remove it by hand (`systemctl disable --now "
                    f"{self.unit.name}`, then delete that file; the data stay on the disks)"
                )
            return
        if wrong := group_problems(self.wanted, self.groups):
            self.problems += wrong
            return
        if not self.problems:  # otherwise a disk is missing from self.disks
            self.problems += membership_problems(self.wanted, self.group, self.members, self.disks)
        for disk in self.disks:
            if disk.number not in self.members:
                self.problems += self.disk_problems(disk)
        if not self.group and os.path.lexists(f"/dev/{self.wanted.volume_group}"):
            self.problems.append(
                f"expected no /dev/{self.wanted.volume_group}, but it exists: choose another name for the volume group"
            )
        self.problems += self.mount_problems()

    def disk_problems(self, disk: Disk) -> list[str]:
        """Return why a disk that is not in our volume group cannot be added to it."""
        owners = [group for group in self.groups if disk.number in map(disks.device_number, group.members)]
        found = [f"it belongs to the volume group {group.name}" for group in owners] + blank.findings(disk)
        return [blank.refusal(disk, found)] if found else []

    def mount_problems(self) -> list[str]:
        """Return the problems of the file system and of its mount point."""
        path, mount, device = self.wanted.path, self.mount, self.wanted.device
        number = self.number if self.volume else None
        if mount is None:
            hidden = os.listdir(path) if os.path.isdir(path) else []
            if hidden:
                return [
                    f"{path}: expected an empty directory to mount {device} at, found {len(hidden)} entries that would "
                    "be hidden: move them away, and back when it is mounted"
                ]
            earlier = re.search(r"^What=(.*)$", disks.read_text(self.unit), re.MULTILINE)
            if earlier and earlier[1] != device:
                return [
                    f"{path}: expected only {device} to be mounted, but {self.unit} mounts {earlier[1]}, which is "
                    "not mounted now: declare that one and mount it, or, if its files are not needed, remove that unit"
                ]
            elsewhere = next((other.path for other in mounts.mounts() if number and other.number == number), None)
            if elsewhere:
                return [
                    f"{path}: expected {device} to be mounted there only, it is mounted at {elsewhere}: choose other "
                    "disks and another volume group for the new path, or the earlier path"
                ]
            if number:
                try:
                    self.filesystem_step()
                except DiskError as error:
                    return [str(error)]
        elif not self.is_ours(mount):
            return [
                f"{path}: expected {device} or nothing to be mounted there, found {mount.source} "
                f"({mount.filesystem}): unmount it, or choose another path"
            ]
        elif mount.filesystem != self.wanted.filesystem:
            return [
                f"{path}: expected the file system {self.wanted.filesystem}, found {mount.filesystem} with data: "
                "declare the one that is there"
            ]
        return []

    def filesystem_step(self) -> str:
        """Return what to do with the file system of our active logical volume (see filesystems.step)."""
        assert self.volume
        device = self.wanted.device
        return filesystems.step(self.wanted.filesystem, device, content.probe(device), self.volume.unfinished)
