#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Make one file system over whole disks, and never over anything that was there before."""

from __future__ import annotations

DOCUMENTATION = r"""
module: local_volume
short_description: Make one mounted file system over blank disks
description:
  - Makes an LVM volume group over the disks, a logical volume over all of it, a file system in that, and mounts it now
    and at boot. Without disks it is a directory on the root file system.
  - A disk is written only if it has a stable name and is blank. Anything on it, and any use of it, is a refusal that
    names the disk and what was found; there is no option to force. What was made here earlier is recognised by the tag
    C(slurmstead) of the volume group and left as it is.
  - A disk that is added to I(disks) enlarges the mounted file system. A disk that is taken out of it is a refusal.
  - Killed at any point and run again, it goes on where it was. A file system is only made in a logical volume that was
    made here and has had none since.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  volume_group:
    description: Name of the volume group; letters, digits and C(_).
    type: str
    required: true
  logical_volume:
    description: Name of the logical volume; letters, digits and C(_).
    type: str
    required: true
  disks:
    description: Stable names of the disks or partitions (C(/dev/disk/by-id/…)).
    type: list
    elements: str
    default: []
  filesystem:
    description: Type of the file system.
    type: str
    choices: [ext4, xfs]
    default: ext4
  path:
    description: Absolute path at which it is mounted.
    type: path
    required: true
  mode:
    description: Octal mode of the root of the file system.
    type: str
    default: '0755'
  options:
    description: Mount options.
    type: list
    elements: str
    default: [nodev, nosuid, noatime]
  state:
    description: C(present) makes it. C(probe) touches nothing and fails where C(present) would refuse.
    type: str
    choices: [present, probe]
    default: present
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Create the scratch file system
  local_volume:
    volume_group: scratch
    logical_volume: scratch
    disks: [/dev/disk/by-id/nvme-CT500P3SSD8_2251E6965C2A]
    path: /scratch
    mode: '0711'

- name: Look whether the disks may be used, before anything is changed anywhere
  local_volume:
    volume_group: scratch
    logical_volume: scratch
    disks: [/dev/disk/by-id/nvme-CT500P3SSD8_2251E6965C2A]
    path: /scratch
    state: probe
"""

RETURN = r"""
problems:
  description: Why it is refused, one message for each; any of them fails the task.
  type: list
  elements: str
  returned: always
actions: {description: What was or would be done., type: list, elements: str, returned: always}
"""

import fcntl
import os
import re
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach import durable
from ansible.module_utils.slurmstead.storage import disks
from ansible.module_utils.slurmstead.storage.disks import Disk, DiskError
from ansible.module_utils.slurmstead.storage.volumes import (
    REPORT,
    SLACK,
    TAG,
    UNFINISHED,
    Group,
    LogicalVolume,
    Wanted,
    ext4_size,
    filesystem_step,
    group_problems,
    is_in_progress,
    membership_problems,
    new_member_id,
    parse_report,
    unit_files,
    unit_name,
    was_mounted,
)

UNITS = Path("/etc/systemd/system")
LOCK = Path("/run/lock/slurmstead-local-volume")
LOCK_DEADLINE = 300
"""Seconds to wait for another run on this machine, or for a tool that a killed run left behind."""

TOOL_DEADLINE = 300
FORMAT_DEADLINE = 3600
"""Seconds; a large file system on slow disks takes minutes to make, check or grow."""

XFS_IOC_FSGEOMETRY_V1 = 0x80705864
"""_IOR('X', 100, struct xfs_fsop_geom_v1), 112 bytes; the same on amd64 and arm64 (fs/xfs/libxfs/xfs_fs.h)."""


class Volume:
    """A volume on this machine: what is there, what is wrong with it, and the steps that make it what is wanted.

    Every step looks for itself whether it is needed, so that each may have been the last of a run that was killed.
    """

    def __init__(self, wanted: Wanted, check_mode: bool) -> None:
        self.wanted = wanted
        self.check_mode = check_mode
        self.actions: list[str] = []
        self.problems: list[str] = []
        self.disks: list[Disk] = []
        self.groups: list[Group] = []
        self.members: dict[str, str] = {}
        self.declared = False
        self.inherit: tuple[int, ...] = ()

    def look(self, names: list[str], inherit: tuple[int, ...]) -> None:
        """See what is there under the declared names and collect everything that forbids to go on."""
        self.declared, self.inherit = bool(names), inherit
        for name in names:
            try:
                self.disks.append(disks.resolve(name))
            except DiskError as error:
                self.problems.append(str(error))
        if names:
            self.read_groups()
        self.find_problems()

    def run(self, command: list[str], deadline: float = TOOL_DEADLINE) -> str:
        """Run a tool that must succeed and return its output."""
        done = disks.run(command, deadline, self.inherit)
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise DiskError(f"expected `{' '.join(command)}` to succeed, it ended with {done.returncode}: {said}")
        return str(done.stdout)

    def act(self, action: str) -> bool:
        """Note an action; say whether to do it."""
        self.actions.append(action)
        return not self.check_mode

    def read_groups(self) -> None:
        """Ask LVM what there is. Where it is not installed yet there is no volume group of ours."""
        if any(os.access(f"{directory}/lvm", os.X_OK) for directory in disks.ENVIRONMENT["PATH"].split(":")):
            self.groups = parse_report(self.run(REPORT))
        self.members = {}
        if self.group:
            self.members = {disks.device_number(member) or member: member for member in self.group.members}

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
        """The device number of our logical volume, None while it is not active."""
        try:
            number: str | None = disks.device_number(self.wanted.device)
        except OSError:
            return None
        wanted = f"LVM-{self.group.uuid.replace('-', '')}" if self.group else ""
        seen = disks.read_text(disks.SYS / "dev/block" / str(number) / "dm/uuid")
        if not wanted or not seen.startswith(wanted):
            raise DiskError(
                f"expected {self.wanted.device} to be the logical volume {self.wanted.name}, it is {seen or number}"
            )
        return number

    @property
    def mount(self) -> disks.Mount | None:
        """What is mounted at the path."""
        return next((mount for mount in reversed(disks.mounts()) if mount.path == self.wanted.path), None)

    @property
    def unit(self) -> Path:
        """The file of the mount unit."""
        return Path(UNITS, unit_name(self.wanted.path, "mount"))

    # What is wrong

    def find_problems(self) -> None:
        """Collect everything that forbids to go on."""
        path = self.wanted.path
        if os.path.lexists(path) and not os.path.isdir(path):
            self.problems.append(f"{path}: expected a directory or nothing, found a file: move it away")
        if not self.declared:
            if self.unit.exists():
                self.problems.append(
                    f"expected disks for {path}, none is declared, and {self.unit} mounts the volume that was "
                    f"made for it earlier: declare its disks, or remove it by hand (`systemctl disable --now "
                    f"{self.unit.name}`, then delete that file; the data stay on the disks)"
                )
            return
        wrong = group_problems(self.wanted, self.groups)
        self.problems += wrong
        if wrong:
            return
        if not self.problems:  # else a disk is not among self.disks
            self.problems += membership_problems(self.wanted, self.group, self.members, self.disks)
        for disk in self.disks:
            if disk.number not in self.members:
                self.problems += self.disk_problems(disk)
        if not self.group and os.path.lexists(f"/dev/{self.wanted.volume_group}"):
            self.problems.append(
                f"expected no /dev/{self.wanted.volume_group}, it exists: choose another name for the volume group"
            )
        self.problems += self.mount_problems()

    def disk_problems(self, disk: Disk) -> list[str]:
        """Return why a disk that is not in our volume group cannot be taken into it."""
        found: list[str] = disks.findings(disk)
        for group in self.groups:
            if disk.number in map(disks.device_number, group.members):
                found.insert(0, f"it belongs to the volume group {group.name}")
        return [disks.refusal(disk, found)] if found else []

    def mount_problems(self) -> list[str]:
        """Return what is wrong with the file system and with the place where it is to be mounted."""
        path, mount = self.wanted.path, self.mount
        number = self.number if self.volume else None
        if mount is None:
            if os.path.isdir(path) and os.listdir(path):
                return [
                    f"{path}: expected an empty directory to mount {self.wanted.device} at, found "
                    f"{len(os.listdir(path))} entries that would be hidden: move them away, and back when it is mounted"
                ]
            if number and self.volume:
                try:
                    filesystem_step(self.wanted, disks.probe(self.wanted.device), self.volume.unfinished)
                except DiskError as error:
                    return [str(error)]
        elif mount.number != number:
            return [
                f"{path}: expected {self.wanted.device} or nothing to be mounted there, found {mount.source} "
                f"({mount.filesystem}): unmount it, or choose another path"
            ]
        elif mount.filesystem != self.wanted.filesystem:
            return [
                f"{path}: expected the file system {self.wanted.filesystem}, found {mount.filesystem} with data: "
                "declare what is there"
            ]
        return []

    # What is done

    def converge(self) -> None:
        """Take all steps that are needed, in order."""
        if self.declared:
            self.ensure_group()
            self.ensure_logical_volume()
            self.ensure_filesystem()
            self.ensure_mounted()
            self.ensure_size()
        else:
            self.ensure_directory(self.wanted.mode)
        self.ensure_mode()

    def ensure_group(self) -> None:
        """Make the volume group, or take further disks into it."""
        added = [disk for disk in self.disks if disk.number not in self.members]
        for disk in added:
            if self.act(f"make a physical volume of {disks.describe(disk)}"):
                self.make_member(disk)
        if not added:
            return
        verb = "extend" if self.group else "make"
        if self.act(f"{verb} the volume group {self.wanted.volume_group}"):
            command = ["vgextend"] if self.group else ["vgcreate", "--addtag", TAG]
            self.run([*command, self.wanted.volume_group, *(disk.device for disk in added)])
            self.read_groups()

    def make_member(self, disk: Disk) -> None:
        """Make a physical volume of a disk, if it still is what it was and blank.

        pvcreate looks for itself, too: it asks before it overwrites a signature, and nobody is there to say yes.
        """
        now = disks.resolve(disk.name)
        found = disks.findings(now)
        if (now.number, now.size) != (disk.number, disk.size):
            found.insert(0, f"another disk than a moment ago ({disks.describe(disk)})")
        if found:
            raise DiskError(disks.refusal(now, found))
        head, _ = disks.read_edges(now.device, now.size)
        begun = disks.unfinished_member(head)
        if begun == "used":
            erase_label(now.device)
        if begun != "label":
            self.run(["pvcreate", "--uuid", new_member_id(), "--norestorefile", now.device])

    def ensure_logical_volume(self) -> None:
        """Make the logical volume, enlarge it to all of the group, activate it; nothing is written where data stand."""
        name = self.wanted.name
        if self.volume is None:
            if self.act(f"make the logical volume {name}"):
                tags = ["--addtag", TAG, "--addtag", UNFINISHED + str(uuid.uuid4())]
                size = ["--extents", "100%FREE", "--zero", "n", "--wipesignatures", "n"]
                self.run(["lvcreate", *tags, *size, "--name", self.wanted.logical_volume, self.wanted.volume_group])
                self.read_groups()
        elif (self.group and self.group.free) or len(self.members) < len(self.disks):
            if self.act(f"extend the logical volume {name}"):
                self.run(["lvextend", "--extents", "+100%FREE", name])
                self.read_groups()
        if self.volume and self.number is None and self.act(f"activate the logical volume {name}"):
            self.run(["lvchange", "--activate", "y", name])

    def ensure_filesystem(self) -> None:
        """Make the file system in a logical volume that never had one."""
        if self.volume is None:  # check mode
            self.act(f"make the file system {self.wanted.filesystem}")
            return
        unfinished = self.volume.unfinished
        if self.mount is None and self.number:
            step = filesystem_step(self.wanted, disks.probe(self.wanted.device), unfinished)
            torn = step == "inspect" and self.is_torn()
            if (step == "make" or torn) and self.act(f"make the file system {self.wanted.filesystem}"):
                self.make_filesystem(str(unfinished), torn)
        if unfinished and self.act("note that the file system is complete"):
            self.run(["lvchange", "--deltag", UNFINISHED + unfinished, self.wanted.name])

    def read_head(self) -> bytes:
        """Return the first 4096 bytes of the logical volume."""
        with open(self.wanted.device, "rb") as file:
            return file.read(4096)

    def is_torn(self) -> bool:
        """Say whether our file system is what an interrupted mkfs left: incomplete and never mounted."""
        head, kind, device = self.read_head(), self.wanted.filesystem, self.wanted.device
        if was_mounted(kind, head):
            return False
        check = {"ext4": ["e2fsck", "-f", "-n", device], "xfs": ["xfs_repair", "-n", device]}[kind]
        if is_in_progress(kind, head):
            return True
        checked = disks.run(check, FORMAT_DEADLINE, self.inherit)
        return bool(checked.returncode != 0)

    def make_filesystem(self, identity: str, torn: bool) -> None:
        """Run mkfs, which opens the device exclusively; `torn` means over what an interrupted one left."""
        if self.wanted.filesystem == "ext4":
            command = ["mkfs.ext4", "-q", "-m", "0", "-E", "nodiscard", "-U", identity]
        else:
            command = ["mkfs.xfs", "-q", "-K", "-m", f"uuid={identity}", *(["-f"] if torn else [])]
        self.run([*command, self.wanted.device], FORMAT_DEADLINE)

    def ensure_directory(self, mode: int) -> None:
        """Make the directory if it is not there."""
        path = Path(self.wanted.path)
        if not path.is_dir() and self.act(f"make the directory {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=mode)

    def ensure_mounted(self) -> None:
        """Mount it at boot and now."""
        changed = False
        for name, text in unit_files(self.wanted).items():
            if disks.read_text(UNITS / name) != text.strip():
                changed = True
                if self.act(f"write {UNITS / name}"):
                    (UNITS / name).parent.mkdir(exist_ok=True)
                    durable.write(UNITS / name, text.encode())
        link = UNITS / "local-fs.target.wants" / self.unit.name
        if not link.is_symlink():
            changed = True
            if self.act(f"enable {self.unit.name}"):
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(self.unit)
        mounted = self.mount is not None
        # Out of reach of everybody while nothing is mounted there.
        self.ensure_directory(0o700)
        if not mounted and not self.act(f"mount it at {self.wanted.path}"):
            return
        if (changed or not mounted) and not self.check_mode:
            self.run(["systemctl", "daemon-reload"])
        if changed and mounted and not self.check_mode:
            options = ",".join(["remount", *self.wanted.options])
            self.run(["mount", "-o", options, self.wanted.path])
        if not mounted:
            # systemd mounts a device when udev is done with it; if that takes longer, the start fails and says so.
            disks.run(["udevadm", "settle", "--timeout=60"], TOOL_DEADLINE, self.inherit)
            self.run(["systemctl", "start", self.unit.name])
            mount = self.mount
            if mount is None or mount.number != self.number:
                raise DiskError(
                    f"expected {self.wanted.device} at {self.wanted.path} after `systemctl start {self.unit.name}`, "
                    f"found {mount.source if mount else 'nothing'}: see `journalctl --unit {self.unit.name}`"
                )

    def ensure_size(self) -> None:
        """Let the mounted file system fill the logical volume; both can grow while they are in use."""
        if self.mount is None or not self.volume:  # check mode
            return
        if self.check_mode and len(self.members) < len(self.disks):
            self.act("grow the file system")
            return
        before = self.filesystem_size()
        if self.volume.size - before < SLACK:
            return
        if self.act("grow the file system"):
            tool = {"ext4": ["resize2fs", self.wanted.device], "xfs": ["xfs_growfs", self.wanted.path]}
            self.run(tool[self.wanted.filesystem], FORMAT_DEADLINE)
            if self.filesystem_size() == before:
                raise DiskError(
                    f"expected the file system at {self.wanted.path} to fill {self.volume.size} bytes, it stays at "
                    f"{before}: see `journalctl --dmesg`"
                )

    def filesystem_size(self) -> int:
        """Return the size in bytes of the mounted file system."""
        if self.wanted.filesystem == "ext4":
            return int(ext4_size(self.read_head()))
        directory = os.open(self.wanted.path, os.O_RDONLY)
        try:
            geometry = bytearray(112)
            fcntl.ioctl(directory, XFS_IOC_FSGEOMETRY_V1, geometry)
        finally:
            os.close(directory)
        block, *_, blocks = struct.unpack_from("=8IQ", geometry)
        return int(block * blocks)

    def ensure_mode(self) -> None:
        """Set the mode of the root of the file system."""
        path = Path(self.wanted.path)
        if self.check_mode and (not path.is_dir() or (self.declared and self.mount is None)):
            return
        mode = self.wanted.mode
        if path.stat().st_mode & 0o7777 != mode and self.act(f"set the mode of {path} to {mode:04o}"):
            path.chmod(mode)


def erase_label(device: str) -> None:
    """Take our own mark off a disk that is blank but for it; pvcreate would want to be forced over it."""
    disk = os.open(device, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
    try:
        os.pwrite(disk, bytes(disks.LABEL.stop - disks.LABEL.start), disks.LABEL.start)
        os.fsync(disk)
    finally:
        os.close(disk)


@contextmanager
def locked(needed: bool) -> Iterator[tuple[int, ...]]:
    """Hold the lock of this module; yields what its tools inherit, so that a tool that outlives it still holds it."""
    if not needed:
        yield ()
        return
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LOCK_DEADLINE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DiskError(
                        f"expected nobody else at the disks, {LOCK} has been held for {LOCK_DEADLINE} s: "
                        f"`fuser -v {LOCK}` names who holds it"
                    ) from None
                time.sleep(1)
        yield (lock,)
    finally:
        os.close(lock)


def check_arguments(module: AnsibleModule) -> Wanted:
    """Return the arguments as a volume; fails the module when one cannot be."""
    given = module.params
    for key in ("volume_group", "logical_volume"):
        if not re.fullmatch(r"[A-Za-z0-9_]{1,60}", given[key]):
            module.fail_json(msg=f"{key}: expected letters, digits and _, found {given[key]!r}")
    if not re.fullmatch(r"(/[A-Za-z0-9_.-]+)+", given["path"]) or os.path.normpath(given["path"]) != given["path"]:
        module.fail_json(
            msg=f"path: expected an absolute path below / without special letters, found {given['path']!r}"
        )
    if not re.fullmatch(r"0?[0-7]{3,4}", given["mode"]):
        module.fail_json(msg=f"mode: expected an octal mode such as '0755', found {given['mode']!r}")
    return Wanted(
        volume_group=given["volume_group"],
        logical_volume=given["logical_volume"],
        filesystem=given["filesystem"],
        path=given["path"],
        mode=int(given["mode"], 8),
        options=tuple(given["options"]),
    )


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "volume_group": {"type": "str", "required": True},
            "logical_volume": {"type": "str", "required": True},
            "disks": {"type": "list", "elements": "str", "default": []},
            "filesystem": {"type": "str", "choices": ["ext4", "xfs"], "default": "ext4"},
            "path": {"type": "path", "required": True},
            "mode": {"type": "str", "default": "0755"},
            "options": {"type": "list", "elements": "str", "default": ["nodev", "nosuid", "noatime"]},
            "state": {"type": "str", "choices": ["present", "probe"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = check_arguments(module)
    probing = module.params["state"] == "probe"
    volume = Volume(wanted, probing or module.check_mode)
    try:
        with locked(needed=not probing and not module.check_mode) as inherit:
            volume.look(module.params["disks"], inherit)
            if not probing and not volume.problems:
                volume.converge()
    except (DiskError, OSError) as error:
        volume.problems.append(str(error))
    result = {"changed": bool(volume.actions), "problems": volume.problems, "actions": volume.actions}
    if volume.actions:
        result["diff"] = {"before": "", "after": "".join(f"{action}\n" for action in volume.actions)}
    if volume.problems:
        module.fail_json(msg="\n".join(volume.problems), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
