# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The systemd units that mount a volume at boot."""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.slurmstead.storage.volumes import Wanted

UNITS = Path("/etc/systemd/system")

OLD = "An earlier share, read-only"
"""Description of the unit that keeps a directory of another file system read-only (freezing.keep)."""


def escape(path: str) -> str:
    r"""Return a path as systemd writes it in the name of a unit (systemd-escape(1), --path), without a suffix.

    >>> escape("/srv/my-share/")
    'srv-my\\x2dshare'
    """
    plain = re.sub(rb"[^A-Za-z0-9:_./]|^\.", lambda match: b"\\x%02x" % ord(match[0]), path.strip("/").encode())
    return re.sub("/+", "-", plain.decode()) or "-"


def old_drop_in(path: str) -> Path:
    """Return the drop-in that mounts an earlier share's file system read-only (freezing.keep)."""
    return UNITS / f"{escape(path)}.mount.d" / "slurmstead-old.conf"


def unit_files(wanted: Wanted) -> dict[str, str]:
    """Return the files below /etc/systemd/system, by name, that mount the volume at boot.

    The target wants the mount but does not require it, and the timeout for the device is short, so that a machine with
    a missing disk still boots. x-systemd.device-timeout= works in fstab only (systemd.mount(5)), hence the drop-in. The
    device also wants the mount, so that a late disk is mounted when it appears.

    An image has no device before it is mounted, so systemd cannot check it first; ext4 and XFS replay their journals.
    """
    mount = f"{escape(wanted.path)}.mount"
    if wanted.image:
        return {mount: _mount(f"Image {wanted.image}", "", wanted, ("loop", *wanted.options))}
    check = f"systemd-fsck@{escape(wanted.device)}.service"
    fsck = f"Requires={check}\nAfter={check}\n" if wanted.filesystem == "ext4" else ""
    return {
        mount: _mount(f"Volume {wanted.name}", fsck, wanted, wanted.options),
        f"{escape(wanted.device)}.device.d/slurmstead.conf": (f"[Unit]\nJobRunningTimeoutSec=30s\nWants={mount}\n"),
    }


def _mount(description: str, unit: str, wanted: Wanted, options: tuple[str, ...]) -> str:
    return (
        "# Written by Slurmstead (local_volume); what is changed here is overwritten.\n"
        f"[Unit]\nDescription={description}\n{unit}\n"
        f"[Mount]\nWhat={wanted.device}\nWhere={wanted.path}\nType={wanted.filesystem}\n"
        f"Options={','.join(options) or 'defaults'}\n\n"
        "[Install]\nWantedBy=local-fs.target\n"
    )
