# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Makes a directory and its mounts on this machine read-only, also after a boot, and writable again.

The kernel refuses while a file is open for writing, so no write is lost.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from ansible.module_utils.slurmstead.storage import disks, images, mounts, share, units
from ansible.module_utils.slurmstead.storage.disks import DiskError
from ansible.module_utils.slurmstead.storage.transfer import DEADLINE, check
from ansible.module_utils.slurmstead.storage.users import users

BUSY = 60.0
"""Seconds to wait for files that are open for writing; an NFS server keeps those of its clients for a moment."""

PAUSE = 2.0

NOTE = "# Written by `scripts/stead move-share`: the share was moved away from here.\n"


def top(path: str) -> mounts.Mount | None:
    """Return what is mounted at a path."""
    return next((mount for mount in reversed(mounts.mounts()) if mount.path == path), None)


def absence(source: str) -> str:
    """Return why a directory does not have the share's files now, as while its disk is missing; empty if it has them.

    A copy of the empty mount point would lose all files that were copied before.
    """
    if top(source) is not None:
        return ""
    if unit := share.unmounted(source):
        return f"{source} is not mounted, so its files are missing: `systemctl start '{unit}'` mounts it"
    if not share.holds_data(source):
        return f"{source} contains no files: mount its disk, or, if the files are lost, use --leave-data"
    return ""


def freeze(source: str) -> bool:
    """Make the share's directory read-only, for this machine and for NFS; return whether it was writable.

    :raises DiskError: it does not have the share's files now, or a file in it stays open for writing
    """
    if wrong := absence(source):
        raise DiskError(wrong)
    mount, exports = top(source), disks.read_text(share.EXPORTS)
    changed = mount is None or not mount.readonly
    # Before the mount, which would look like a file system of its own after an interruption.
    keep(source, is_own=mount is not None and units.OLD not in disks.read_text(_unit(source)))
    if mount is None:
        check(["mount", "--bind", source, source])
    if changed:
        remount(source, "ro")
    if "(rw," in exports:
        share.EXPORTS.write_text(f"{exports}\n".replace("(rw,", "(ro,"))
        check(["exportfs", "-r"])
        changed = True
    return changed


def _unit(source: str) -> Path:
    return units.UNITS / f"{units.escape(source)}.mount"


def keep(source: str, *, is_own: bool) -> None:
    """Mount a directory read-only at each boot.

    :param is_own: a file system is mounted there; otherwise it is a directory of another one
    """
    unit, drop_in = _unit(source), units.old_drop_in(source)
    given = re.search(r"^Options=(.*)$", disks.read_text(unit), re.MULTILINE)
    if is_own and given:
        drop_in.parent.mkdir(exist_ok=True)
        drop_in.write_text(f"{NOTE}[Mount]\nOptions={given[1]},ro\n")
    elif not is_own:
        unit.write_text(
            f"{NOTE}[Unit]\nDescription={units.OLD}\n\n[Mount]\nWhat={source}\nWhere={source}\nType=none\n"
            "Options=bind,ro\n\n[Install]\nWantedBy=local-fs.target\n"
        )
        link = units.UNITS / "local-fs.target.wants" / unit.name
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(unit)
    # After a power cut, an empty unit would keep the directory from being mounted, and this program from going on.
    os.sync()
    check(["systemctl", "daemon-reload"])


def thaw(source: str) -> bool:
    """Make the share's directory writable again; return whether it was read-only."""
    mount, unit, drop_in = top(source), _unit(source), units.old_drop_in(source)
    is_ours, readonly = units.OLD in disks.read_text(unit), mount is not None and mount.readonly
    # `freeze` may have been interrupted, or refused by an open file, before the mount was read-only.
    if not (is_ours or readonly or drop_in.exists()):
        return False
    drop_in.unlink(missing_ok=True)
    if is_ours:
        (units.UNITS / "local-fs.target.wants" / unit.name).unlink(missing_ok=True)
        unit.unlink()
        # Clients that use its export keep the mount busy; then it stays until the next boot.
        if mount is not None and disks.run(["umount", source], DEADLINE).returncode:
            remount(source, "rw")
    elif readonly:
        # After a boot, the file system itself is read-only too.
        check(["mount", "-o", "remount,rw", source])
        remount(source, "rw")
    check(["systemctl", "daemon-reload"])
    return True


def freeze_clients(paths: Iterable[str], option: str) -> bool:
    """Give mounts of the share that do not use NFS the option `ro` or `rw`; return whether one was different."""
    if option == "ro":
        # What a job wrote through a mapped file can be in the memory of an NFS client only, for half a minute.
        os.sync()
    changed = False
    for path in paths:
        mount = top(path)
        if mount and mount.filesystem not in ("autofs", "nfs4") and mount.readonly != (option == "ro"):
            remount(path, option)
            changed = True
    return changed


def remount(path: str, option: str) -> None:
    """Change a mount, not its file system, which may have others. Waits while files are open for writing."""
    until = time.monotonic() + BUSY
    while (done := disks.run(["mount", "-o", f"remount,bind,{option}", path], DEADLINE)).returncode:
        if time.monotonic() > until:
            found = "; ".join(users([path], of_jobs=True)) or "see `fuser -vm` of that directory"
            raise DiskError(f"{path} cannot become read-only: {done.stderr.strip()}: {found}")
        time.sleep(PAUSE)


def removal(source: str) -> str:
    """Return the commands with which an administrator removes an earlier share and its files."""
    unit, drop_in = _unit(source), units.old_drop_in(source)
    device = (top(source) or mounts.Mount("", "", "", "")).source
    files = f"rm -r {source}"
    if not drop_in.exists() and not unit.exists():
        return files
    if drop_in.exists():
        files = f"rm {images.path(source)}" if device.startswith("/dev/loop") else f"lvremove {device}"
    return f"systemctl disable --now '{unit.name}' && rm -rf '{unit}' '{unit}.d' && {files}"
