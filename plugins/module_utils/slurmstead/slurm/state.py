# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""slurmctld's state directory: read while slurmctld runs, and restored while it does not.

slurmctld writes each file as `.new`, links the previous one as `.old`, and replaces it by unlink and link
(save_buf_to_state in src/common/state_save.c, dump_all_job_state in job_mgr.c, 21.08 to 24.11). So an open file never
changes, and a name can be missing for a moment. Job scripts appear in `hash.N/job.N` before the job appears in
`job_state`, and are removed after it has been purged from there.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import time
from collections.abc import Callable, Mapping

from ansible.module_utils.slurmstead.reach import durable

JOBS = "job_state"

UNREADABLE = re.compile(r",? start with '-i' to ignore this\..*")
"""How slurmctld goes on when it cannot read its state (job_mgr.c, node_mgr.c, part_mgr.c, 22.05 to 24.11)."""

DAMAGED = "The saved queue is damaged: restore your last backup with `stead restore FILE`"

SAVED_WITHIN = 6.0
"""Seconds after which slurmctld has saved all earlier changes: SAVE_MAX_WAIT is 5, and it checks every second."""

TRIES = 20
PAUSE = 0.05


def advised(said: str) -> str:
    """Return slurmctld's last words with what to do if it cannot read its state; it advises to lose jobs.

    >>> advised("Incomplete job state save file, start with '-i' to ignore this. Warning: using -i will lose the data")
    'Incomplete job state save file. The saved queue is damaged: restore your last backup with `stead restore FILE`'
    """
    return UNREADABLE.sub(f". {DAMAGED}", said)


def read(directory: pathlib.Path) -> dict[str, bytes]:
    """Return the contents of all files of the state, by their names relative to the directory.

    Job scripts are read before and after the other files, so that the script of every job in `job_state` is included.
    """
    scripts = _scripts(directory)
    rest = {path.name: content for path in _plain(directory) if (content := _content(path)) is not None}
    return {**rest, **scripts, **_scripts(directory)}


def _plain(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return the paths of the files, each with its final name.

    A listing can miss all names of a file that is being replaced; the file of the jobs is always included.
    """
    names = {path.name for path in directory.iterdir() if not path.is_symlink() and not path.is_dir()}
    whole = {name.removesuffix(".old").removesuffix(".new") for name in names}
    return [directory / name for name in sorted({JOBS, *whole})]


def _content(path: pathlib.Path) -> bytes | None:
    """Return a file that slurmctld may be replacing; if the new file is lost, the previous one, as slurmctld does.

    None if the file does not exist, or only in an unfinished version.
    """
    names = [path] * TRIES
    if path.name == JOBS:
        names += [path.with_name(f"{JOBS}.old"), path]
    for name in names:
        try:
            return name.read_bytes()
        except FileNotFoundError:
            time.sleep(PAUSE)
    return None


def _scripts(directory: pathlib.Path) -> dict[str, bytes]:
    found = {}
    for path in directory.glob("hash.*/job.*/*"):
        try:
            found[str(path.relative_to(directory))] = path.read_bytes()
        except FileNotFoundError:
            continue
    return found


def wait_until_saved(
    directory: pathlib.Path, clock: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until the current jobs are on the disk: until slurmctld has saved them, or would have done so."""
    began = clock()
    while clock() < began + SAVED_WITHIN:
        try:
            if (directory / JOBS).stat().st_mtime > began:
                return
        except FileNotFoundError:
            pass
        sleep(PAUSE)


def place(files: Mapping[str, bytes], directory: pathlib.Path, uid: int, gid: int) -> str:
    """Replace the content of a directory with these files, atomically, readable only by its owner.

    Return where the previous content is kept, if there was any. slurmctld must not run.
    """
    real = pathlib.Path(os.path.realpath(directory))
    # Files cannot be renamed to another file system.
    inside = os.path.ismount(real)
    beside = real if inside else real.parent
    partial = beside / f".{real.name}.restored"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    for name, content in files.items():
        path = partial / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "wb", opener=_for_the_owner) as file:
            file.write(content)
    for path in (partial, *partial.rglob("*")):
        os.chown(path, uid, gid)
        path.chmod(0o700 if path.is_dir() else 0o600)
    # There are two files per job: syncing them one by one takes minutes on a slow disk.
    os.sync()
    before = f"{real.name}.before-"
    kept = beside / f"{before}{time.strftime('%Y-%m-%dT%H.%M.%S')}"
    left = (partial.name, "lost+found")
    previous = [
        path
        for path in (real.iterdir() if real.exists() else ())
        if not (inside and (path.name in left or path.name.startswith(before)))
    ]
    if previous:
        kept.mkdir(mode=0o700)
        os.chown(kept, uid, gid)
    # One by one: with an overlay as the root, the directory itself cannot be renamed, because it is the package's.
    for path in previous:
        path.rename(kept / path.name)
    if inside:
        for path in partial.iterdir():
            path.rename(real / path.name)
        partial.rmdir()
    else:
        if real.exists():
            real.rmdir()
        partial.rename(real)
    durable.sync(beside)
    return str(kept) if previous else ""


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
