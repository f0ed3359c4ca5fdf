#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Create one file system over whole disks, and never overwrite existing data."""

from __future__ import annotations

DOCUMENTATION = r"""
module: local_volume
short_description: Create and mount one file system over blank disks
description:
  - Creates an LVM volume group over the disks, one logical volume that fills it, and a file system in that; mounts it
    now and at boot. Without disks it creates a directory on the root file system, or with O(image_size) a file system
    in a file, whose space it reserves.
  - Writes to a disk only if it has a stable name and is blank. If a disk is in use or has any content, refuses and
    names the disk and the finding; there is no option to force. An earlier volume of this module is recognised by the
    tag C(slurmstead) of its volume group and kept.
  - A disk added to I(disks) enlarges the mounted file system. If a disk is removed from I(disks), the module refuses.
  - If the module is killed at any point, the next run continues. A file system is only created in a logical volume that
    this module created and that never had one.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  volume_group: {type: str, required: true, description: Name of the volume group; letters, digits and C(_).}
  logical_volume: {type: str, required: true, description: Name of the logical volume; letters, digits and C(_).}
  disks:
    description: Stable names of the disks or partitions (C(/dev/disk/by-id/…)).
    type: list
    elements: str
    default: []
  image_size:
    description:
      - Size of a file below C(/var/lib/slurmstead) for the file system, used without disks; a number and C(M), C(G) or
        C(T), or C(auto) for half of the free space. A larger number enlarges the file system. Empty for a directory.
      - A directory that already has files, or in which an administrator mounts something, stays as it is.
    type: str
    default: ''
  filesystem: {type: str, choices: [ext4, xfs], default: ext4, description: Type of the file system.}
  path: {type: path, required: true, description: Absolute path of the mount point.}
  mode: {type: str, default: '0755', description: Octal mode of the root of the file system, or of a new directory.}
  options: {type: list, elements: str, default: [nodev, nosuid, noatime], description: Mount options.}
  state:
    description: C(present) creates it. C(probe) changes nothing and fails if C(present) would refuse.
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
    state: present  # `probe` only checks whether the disks may be used
"""

RETURN = r"""
problems: {description: Reasons for a refusal; any of them fails the task., type: list, elements: str, returned: always}
actions: {description: Actions taken; in check mode those that would be., type: list, elements: str, returned: always}
devices: {description: 'Names of the declared disks by number (major:minor).', type: dict, returned: always}
"""

import contextlib
import fcntl
import os
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach import durable, run_directory
from ansible.module_utils.slurmstead.storage import blank, content, disks, filesystems, images, units
from ansible.module_utils.slurmstead.storage.disks import Disk, DiskError
from ansible.module_utils.slurmstead.storage.inspection import TOOL_DEADLINE, Inspection
from ansible.module_utils.slurmstead.storage.volumes import TAG, UNFINISHED, Wanted, new_member_id

LOCK = run_directory.PATH / "local-volume.lock"
LOCK_DEADLINE = 300
"""Seconds to wait for another run on this machine, or for a tool that a killed run left running."""

FORMAT_DEADLINE = 3600
"""Timeout in seconds; on slow disks, creating, checking or growing a large file system takes minutes."""

FORMS = {
    "volume_group": (r"[A-Za-z0-9_]{1,60}", "letters, digits and _"),
    "logical_volume": (r"[A-Za-z0-9_]{1,60}", "letters, digits and _"),
    "path": (r"(/(?!\.\.?(/|$))[A-Za-z0-9_.-]+)+", "an absolute path below / without special letters"),
    "mode": (r"0?[0-7]{3,4}", "an octal mode such as '0755'"),
    "image_size": (f"({images.FORM})?", "auto, or a number with M, G or T, such as 200G"),
}
"""Pattern of each argument, and its description in messages."""


class Volume(Inspection):
    """A volume on this machine, with the steps that bring it to the wanted state.

    Every step checks whether it is needed, because a killed run may have ended after any of them.
    """

    def __init__(self, wanted: Wanted, check_mode: bool) -> None:
        super().__init__(wanted)
        self.check_mode = check_mode
        self.actions: list[str] = []

    def act(self, action: str) -> bool:
        """Record an action; return whether to do it."""
        self.actions.append(action)
        return not self.check_mode

    def converge(self) -> None:
        """Run all steps that are needed, in order."""
        if self.wanted.image:
            self.ensure_image()
            self.ensure_mounted()
            self.ensure_size()
        elif self.declared:
            self.ensure_group()
            self.ensure_logical_volume()
            self.ensure_filesystem()
            self.ensure_mounted()
            self.ensure_size()
        else:
            self.ensure_directory(self.wanted.mode)
            return
        self.ensure_mode()

    def ensure_group(self) -> None:
        """Create the volume group, or add further disks to it."""
        added = [disk for disk in self.disks if disk.number not in self.members]
        for disk in added:
            if self.act(f"make a physical volume of {disks.describe(disk)}"):
                self.make_member(disk)
        verb, command = ("extend", ["vgextend"]) if self.group else ("make", ["vgcreate", "--addtag", TAG])
        if added and self.act(f"{verb} the volume group {self.wanted.volume_group}"):
            self.run([*command, self.wanted.volume_group, *(disk.device for disk in added)])
            self.read_groups()

    def make_member(self, disk: Disk) -> None:
        """Create a physical volume on a disk, if it is still the same disk and blank.

        pvcreate checks this too: it asks before it overwrites a signature, and gets no answer.
        """
        now = disks.resolve(disk.name)
        found = blank.findings(now)
        if (now.number, now.size) != (disk.number, disk.size):
            found.insert(0, f"a different disk than a moment ago ({disks.describe(disk)})")
        if found:
            raise DiskError(blank.refusal(now, found))
        head = content.read_head(now.device, now.size)
        begun = content.unfinished_member(head)
        if begun == "used":
            erase_label(now.device, content.erased_byte(head))
        if begun != "label":
            self.run(["pvcreate", "--uuid", new_member_id(), "--norestorefile", now.device])

    def ensure_logical_volume(self) -> None:
        """Create the logical volume, extend it to fill the group, activate it; existing data are not overwritten."""
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
        """Create the file system in a logical volume that never had one."""
        kind, device = self.wanted.filesystem, self.wanted.device
        if self.volume is None:  # check mode
            self.act(f"make the file system {kind}")
            return
        unfinished = self.volume.unfinished
        if self.mount is None and self.number:
            step = self.filesystem_step()
            torn = step == "inspect" and self.is_torn()
            if (step == "make" or torn) and self.act(f"make the file system {kind}"):
                self.run(filesystems.make_command(kind, device, str(unfinished), torn), FORMAT_DEADLINE)
        if unfinished and self.act("note that the file system is complete"):
            self.run(["lvchange", "--deltag", UNFINISHED + unfinished, self.wanted.name])

    def is_torn(self) -> bool:
        """Return whether an interrupted mkfs left our file system incomplete and never mounted."""
        kind, device = self.wanted.filesystem, self.wanted.device
        head = filesystems.head(device)
        if filesystems.was_mounted(kind, head):
            return False
        check = filesystems.check_command(kind, device)
        torn = filesystems.is_in_progress(kind, head)
        return torn or disks.run(check, FORMAT_DEADLINE, self.inherit).returncode != 0

    def ensure_image(self) -> None:
        """Create the image with its file system, or enlarge it. It gets its name once the file system is complete."""
        image, size = Path(self.wanted.image), self.image_bytes
        if not image.exists():
            if not self.act(f"make the file {image} of {disks.human_size(size)} with the file system"):
                return
            image.parent.mkdir(parents=True, exist_ok=True)
            # Never mounted, so it contains no data.
            part = images.part(image)
            part.unlink(missing_ok=True)
            reserve(part, size)
            self.run(
                filesystems.make_command(self.wanted.filesystem, str(part), str(uuid.uuid4()), False), FORMAT_DEADLINE
            )
            durable.sync(part)
            part.rename(image)
            durable.sync(image.parent)
        elif image.stat().st_size < size and self.act(f"enlarge {image} to {disks.human_size(size)}"):
            reserve(image, size)

    def ensure_directory(self, mode: int) -> None:
        """Create the directory if it does not exist; one that exists keeps its mode."""
        path = Path(self.wanted.path)
        if not path.is_dir() and self.act(f"make the directory {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=mode)
            path.chmod(mode)

    def ensure_mounted(self) -> None:
        """Mount it at boot and now."""
        before, mounted = len(self.actions), self.mount is not None
        files = {units.UNITS / name: text for name, text in units.unit_files(self.wanted).items()}
        stale = [path for path, text in files.items() if disks.read_text(path) != text.strip()]
        if stale and mounted and not self.check_mode:
            # Before the files, in which the next run would see no difference.
            self.run(["mount", "-o", ",".join(["remount", *self.wanted.options]), self.wanted.path])
        for path in stale:
            if self.act(f"write {path}"):
                path.parent.mkdir(exist_ok=True)
                durable.write(path, files[path].encode())
        link = units.UNITS / "local-fs.target.wants" / self.unit.name
        if not link.is_symlink() and self.act(f"enable {self.unit.name}"):
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(self.unit)
        changed = len(self.actions) > before
        # Users cannot write to the directory while nothing is mounted on it.
        self.ensure_directory(0o700)
        if not mounted:
            self.act(f"mount it at {self.wanted.path}")
        if self.check_mode or (mounted and not changed):
            return
        self.run(["systemctl", "daemon-reload"])
        if mounted:
            return
        # systemd mounts a device once udev has processed it; if that takes too long, the start fails with an error.
        disks.run(["udevadm", "settle", "--timeout=60"], TOOL_DEADLINE, self.inherit)
        self.run(["systemctl", "start", self.unit.name])
        mount = self.mount
        if mount is None or not self.is_ours(mount):
            raise DiskError(
                f"expected {self.wanted.device} at {self.wanted.path} after `systemctl start {self.unit.name}`, "
                f"found {mount.source if mount else 'nothing'}: see `journalctl --unit {self.unit.name}`"
            )

    def ensure_size(self) -> None:
        """Grow the mounted file system to fill the logical volume or image; both can grow while in use."""
        kind, device, path = self.wanted.filesystem, self.wanted.device, self.wanted.path
        if self.mount is None or not (self.volume or self.wanted.image):  # check mode
            return
        if self.wanted.image:
            device = self.mount.source
        size = self.volume.size if self.volume else self.image_bytes
        before = filesystems.size(kind, device, path)
        extended = self.check_mode and len(self.members) < len(self.disks)
        if size - before < filesystems.SLACK and not extended:
            return
        if self.act("grow the file system"):
            if self.wanted.image:
                self.run(["losetup", "--set-capacity", device])
            self.run(filesystems.grow_command(kind, device, path), FORMAT_DEADLINE)
            if filesystems.size(kind, device, path) == before:
                raise DiskError(
                    f"expected the file system at {path} to fill {size} bytes, it stays at {before}: "
                    "see `journalctl --dmesg`"
                )

    def ensure_mode(self) -> None:
        """Set the mode of the root of the file system."""
        path = Path(self.wanted.path)
        if self.check_mode and self.mount is None:
            return
        mode = self.wanted.mode
        if path.stat().st_mode & 0o7777 != mode and self.act(f"set the mode of {path} to {mode:04o}"):
            path.chmod(mode)


def reserve(path: Path, size: int) -> None:
    """Create or enlarge a file that only root can read, with all of its space."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, size)
        os.fsync(file)
    finally:
        os.close(file)


def erase_label(device: str, erased: bytes) -> None:
    """Erase our own label on an otherwise blank disk; otherwise pvcreate would have to be forced.

    `erased` is the byte of which the rest of the disk consists.
    """
    disk = os.open(device, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
    try:
        os.pwrite(disk, erased * (content.LABEL.stop - content.LABEL.start), content.LABEL.start)
        os.fsync(disk)
    finally:
        os.close(disk)


@contextlib.contextmanager
def locked() -> Iterator[tuple[int, ...]]:
    """Hold this module's lock; yield the file that its tools inherit: a tool that outlives it keeps the lock."""
    lock = run_directory.open_lock(LOCK)
    try:
        deadline = time.monotonic() + LOCK_DEADLINE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DiskError(
                        f"expected no other run to use the disks, but {LOCK} has been held for {LOCK_DEADLINE} s: "
                        f"`fuser -v {LOCK}` names the process that holds it"
                    ) from None
                time.sleep(1)
        yield (lock,)
    finally:
        os.close(lock)


def main() -> None:
    """Run the module."""
    # Others than root read what is in the directories that this creates, whatever root's umask.
    os.umask(0o022)
    module = AnsibleModule(
        argument_spec={
            "volume_group": {"type": "str", "required": True},
            "logical_volume": {"type": "str", "required": True},
            "disks": {"type": "list", "elements": "str", "default": []},
            "image_size": {"type": "str", "default": ""},
            "filesystem": {"type": "str", "choices": ["ext4", "xfs"], "default": "ext4"},
            "path": {"type": "path", "required": True},
            "mode": {"type": "str", "default": "0755"},
            "options": {"type": "list", "elements": "str", "default": ["nodev", "nosuid", "noatime"]},
            "state": {"type": "str", "choices": ["present", "probe"], "default": "present"},
        },
        supports_check_mode=True,
    )
    given = module.params
    for key, (form, expected) in FORMS.items():
        if not re.fullmatch(form, given[key]):
            module.fail_json(msg=f"{key}: expected {expected}, found {given[key]!r}")
    names = {key: given[key] for key in ("volume_group", "logical_volume", "filesystem", "path")}
    wanted = Wanted(**names, mode=int(given["mode"], 8), options=tuple(given["options"]))
    probing = given["state"] == "probe"
    reading = probing or module.check_mode
    volume = Volume(wanted, reading)
    try:
        with contextlib.nullcontext(()) if reading else locked() as inherit:
            volume.look(given["disks"], inherit, given["image_size"])
            if not probing and not volume.problems:
                volume.converge()
    except (DiskError, OSError) as error:
        volume.problems.append(str(error))
    result = {"changed": bool(volume.actions), "problems": volume.problems, "actions": volume.actions}
    result["devices"] = {disk.number: disk.name for disk in volume.disks}
    if volume.actions:
        result["diff"] = {"before": "", "after": "".join(f"{action}\n" for action in volume.actions)}
    if given["image_size"] and not (given["disks"] or volume.wanted.image or volume.mount or probing):
        module.warn(
            f"{given['path']} is a directory of the system's own disk, so its users can fill that disk: choose another "
            "directory in nfs_server_path and nfs_client_source, and run scripts/stead move-share (docs/share.md)"
        )
    if volume.problems:
        module.fail_json(msg="\n".join(volume.problems), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
