#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""One step of moving the share to another machine or directory."""

from __future__ import annotations

DOCUMENTATION = r"""
module: share_move
short_description: One step of moving the share to another machine or directory
description:
  - Each step checks whether it is needed, so a repeated run continues an interrupted one. No file of the original is
    changed or removed.
  - Only a directory with the mark of a copy is written to. C(begun) creates it, if the directory is empty, and C(ended)
    removes it; until then site.yml refuses to use the directory as the share, and no user can enter an incomplete copy.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  state:
    description:
      - C(used) finds the processes that use O(paths), and the size of O(source) in bytes if it is given,
        which must have files.
      - C(begun) marks O(directory) as a copy of O(original) and creates the key that reads it.
      - C(served) lets O(client) read O(source).
      - C(copied) makes O(directory) equal to O(source) on O(server); with O(final), the checksums of all files too.
      - C(frozen) makes O(source), if given, and the mounts at O(paths) that do not use NFS read-only.
      - C(thawed) undoes that.
      - C(left) unmounts O(paths) and disables their automounts.
      - C(retired) stops exporting O(source); its files stay.
      - C(ended) removes the mark from O(directory).
    type: str
    required: true
    choices: [used, begun, served, copied, frozen, thawed, left, retired, ended]
  paths: {type: list, elements: path, default: [], description: Mount points of the share.}
  source: {type: str, default: '', description: Directory of the original on its machine.}
  directory: {type: str, default: '', description: Directory of the copy on its machine.}
  original: {type: str, default: '', description: 'The original, as HOST:DIRECTORY.'}
  bytes: {type: int, default: 0, description: Size of the original in bytes.}
  of_jobs: {type: bool, default: true, description: Whether processes of jobs count for C(used).}
  address: {type: str, default: '', description: Address of this machine.}
  client: {type: str, default: '', description: Address of the machine that copies.}
  client_key: {type: str, default: '', description: Its public key.}
  server: {type: str, default: '', description: Address of the machine with the original; empty if it is this one.}
  host_key: {type: str, default: '', description: The public host key that C(served) returned.}
  final: {type: bool, default: false, description: Whether the original does not change any more.}
  keeps_server: {type: bool, default: false, description: Whether this machine stays the NFS server.}
  deadline: {type: int, default: 2880, description: Minutes that a copy may take.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Make the earlier share read-only
  share_move:
    state: frozen
    source: /srv/share
    paths: [/share]
"""

RETURN = r"""
problems: {description: Reasons that prevent the step., type: list, elements: str, returned: always}
said: {description: Description of what was done., type: str, returned: success}
bytes: {description: Size of O(source)., type: int, returned: C(used)}
key: {description: The public key of this machine., type: str, returned: 'C(begun), C(served)'}
"""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach import durable, run_directory
from ansible.module_utils.slurmstead.storage import disks, freezing, share, transfer, units
from ansible.module_utils.slurmstead.storage.disks import DiskError, human_size
from ansible.module_utils.slurmstead.storage.transfer import DEADLINE, check
from ansible.module_utils.slurmstead.storage.users import users

LOCK = run_directory.PATH / "share-move.lock"
BUSY, PAUSE = 20.0, 1.0
"""Seconds to wait for a process that uses a mount for a moment, and between two attempts."""

MARGIN = 1.05
"""A copy needs this many times the space of its original: file systems store the same files differently."""

Result = dict[str, Any]


@contextlib.contextmanager
def locked() -> Iterator[tuple[int, ...]]:
    """Hold the lock of copies; an rsync that outlives its run inherits it."""
    lock = run_directory.open_lock(LOCK)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DiskError(
                "an interrupted run is still copying: repeat the command when it has ended "
                f"(`fuser -v {LOCK}` names its process)"
            ) from None
        yield (lock,)
    finally:
        os.close(lock)


def used(given: Result, check_mode: bool) -> Result:
    """Find processes, and the size of the original."""
    del check_mode
    found = users([path for path in (*given["paths"], given["source"]) if path], of_jobs=given["of_jobs"])
    problems = [f"{text}: end it first" for text in found]
    size = 0
    if given["source"]:
        if wrong := freezing.absence(given["source"]):
            return {"problems": [*problems, wrong]}
        command = ["du", "--summarize", "--one-file-system", "--block-size=1", given["source"]]
        done = disks.run(command, 60.0 * given["deadline"])
        # Files that jobs remove meanwhile are no problem.
        lost = [line for line in done.stderr.splitlines() if not line.endswith("No such file or directory")]
        if done.returncode and (lost or not done.stdout):
            raise DiskError(f"`{' '.join(command)}` exited with {done.returncode}: {' '.join(lost) or done.stderr}")
        size = int(done.stdout.split()[0])
    return {"problems": problems, "bytes": size}


def begun(given: Result, check_mode: bool) -> Result:
    """Mark the copy."""
    place = Path(given["directory"])
    marked = share.original(given["directory"])
    if marked == given["original"]:
        return {"key": "" if check_mode else transfer.public_key("key")}
    if marked:
        raise DiskError(f"{place} is an incomplete copy of {marked}: choose another directory, or move its files away")
    if share.holds_data(str(place)):
        raise DiskError(f"expected {place} to be empty or missing, it contains files: choose another directory")
    if check_mode:
        return {"changed": True, "key": ""}
    place.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(place).free, int(given["bytes"] * MARGIN)
    if free < needed:
        raise DiskError(
            f"expected {human_size(needed)} of free space for the copy in {place}, found {human_size(free)}: "
            "declare larger disks, or a larger nfs_server_size"
        )
    closed = place / share.MARK
    closed.mkdir(mode=0o700, exist_ok=True)
    (closed / "files").mkdir(exist_ok=True)
    durable.write(closed / "original", given["original"].encode(), mode=0o600)
    durable.sync(place)
    return {"changed": True, "key": transfer.public_key("key")}


def served(given: Result, check_mode: bool) -> Result:
    """Let the new server read the original."""
    if check_mode:
        return {"key": ""}
    return {"key": transfer.serve(given["source"], given["address"], given["client"], given["client_key"])}


def copied(given: Result, check_mode: bool) -> Result:
    """Copy, and compare."""
    if check_mode:
        return {"changed": True, "said": f"{given['original']} would be copied to {given['directory']}"}
    original = transfer.Original(given["source"], given["server"], given["host_key"])
    with locked() as inherit:
        seconds = 60.0 * given["deadline"]
        size = transfer.copy(original, given["directory"], final=given["final"], deadline=seconds, inherit=inherit)
    compared = ", the checksums of all files are equal" if given["final"] else ""
    return {"changed": size > 0, "said": f"{human_size(size)} copied from {given['original']}{compared}"}


def frozen(given: Result, check_mode: bool) -> Result:
    """Make the original read-only."""
    if check_mode:
        return {"changed": True}
    changed = freezing.freeze_clients(given["paths"], "ro")
    if given["source"]:
        changed |= freezing.freeze(given["source"])
    return {"changed": changed}


def thawed(given: Result, check_mode: bool) -> Result:
    """Make the original writable again."""
    if check_mode:
        return {"changed": True}
    changed = freezing.thaw(given["source"]) if given["source"] else False
    transfer.stop()
    shutil.rmtree(transfer.RUN, ignore_errors=True)
    return {"changed": freezing.freeze_clients(given["paths"], "rw") or changed}


def left(given: Result, check_mode: bool) -> Result:
    """Unmount the share. Busy mounts are refused, not detached: their processes would keep the earlier files."""
    changed = False
    for path in given["paths"]:
        automount = f"{units.escape(path)}.automount"
        enabled = (units.UNITS / "multi-user.target.wants" / automount).is_symlink()
        if not enabled and freezing.top(path) is None:
            continue
        changed = True
        if check_mode:
            continue
        unmount(path)
        check(["systemctl", "disable", "--now", automount])
        # A process may have mounted it again before its automount was stopped; this also waits for such a mount.
        disks.run(["systemctl", "stop", automount.replace(".automount", ".mount")], DEADLINE)
        unmount(path)
    return {"changed": changed}


def unmount(path: str) -> None:
    """Unmount what is mounted at a path, except an automount. Waits a moment for processes such as the health check."""
    until = time.monotonic() + BUSY
    while (mount := freezing.top(path)) and mount.filesystem != "autofs":
        done = disks.run(["umount", path], DEADLINE)
        if done.returncode and time.monotonic() > until:
            found = "; ".join(users([path], of_jobs=True)) or done.stderr.strip()
            raise DiskError(f"{path} cannot be unmounted: {found}: end it, then repeat the command")
        time.sleep(PAUSE if done.returncode else 0)


def retired(given: Result, check_mode: bool) -> Result:
    """Stop exporting the original, and say where it stays."""
    source, host = given["source"], given["original"].partition(":")[0]
    # exportfs(8) ignores the name. Until the file is removed, a repeated run continues here.
    aside = share.EXPORTS.with_suffix(".retired")
    exports = share.exported() == source or aside.exists()
    if check_mode:
        return {"changed": exports}
    transfer.stop()
    shutil.rmtree(transfer.RUN, ignore_errors=True)
    if exports and not given["keeps_server"]:
        if share.EXPORTS.exists():
            share.EXPORTS.replace(aside)
        check(["exportfs", "-r"])
        if not check(["exportfs", "-s"]).strip():
            check(["systemctl", "disable", "--now", "nfs-server.service"])
        aside.unlink()
    said = f"the earlier share stays on {host} in {source}, read-only; to remove it: {freezing.removal(source)}"
    return {"changed": exports, "said": said}


def ended(given: Result, check_mode: bool) -> Result:
    """Make the copy the share."""
    closed = Path(given["directory"], share.MARK)
    changed = closed.exists()
    if changed and not check_mode:
        if (closed / "files").exists():
            # With --leave-data, what was copied before the original was lost.
            transfer.show(given["directory"])
            (closed / "files").rmdir()
        (closed / "original").unlink(missing_ok=True)
        closed.rmdir()
        durable.sync(closed.parent)
        shutil.rmtree(transfer.RUN, ignore_errors=True)
    return {"changed": changed}


STEPS = {step.__name__: step for step in (used, begun, served, copied, frozen, thawed, left, retired, ended)}


def main() -> None:
    """Run the module."""
    text = {"type": "str", "default": ""}
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": list(STEPS)},
            "paths": {"type": "list", "elements": "path", "default": []},
            **dict.fromkeys(("source", "directory", "original", "address", "client"), text),
            **dict.fromkeys(("client_key", "server", "host_key"), {**text, "no_log": False}),
            "bytes": {"type": "int", "default": 0},
            "of_jobs": {"type": "bool", "default": True},
            "final": {"type": "bool", "default": False},
            "keeps_server": {"type": "bool", "default": False},
            "deadline": {"type": "int", "default": 2880},
        },
        supports_check_mode=True,
    )
    try:
        result = STEPS[module.params["state"]](module.params, module.check_mode)
    except (DiskError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**{"changed": False, "problems": [], **result})


if __name__ == "__main__":
    main()
