"""Removes environments and copies that are no longer needed; part of each submission.

The user may have named a directory with other files in it, also in its `runs` and `environments`, so only what has our
mark or a name that nothing else has is removed.
"""

import contextlib
import os
import pathlib
import re
import shutil
import time

from slurmstead.client.remote import store
from slurmstead.client.remote.errors import NoAnswer
from slurmstead.client.remote.store import Store

UNUSED_DAYS = 30
"""Days without use after which an environment is removed."""
ABANDONED_DAYS = 7
"""Days after which an input that was never submitted is removed."""
KILLED_DAYS = 1
"""Days after which a build without a lock is dead: after a reboot of the server, live ones have yet to claim theirs."""

DAY = 86400

GONE = re.compile(rf"\.{store.ID.pattern}\.[0-9a-f]{{8}}\.stead")
"""The name of a run that Store.remove did not remove completely."""
PARTIAL = re.compile(r"\..*\.[A-Za-z0-9]{6}", re.DOTALL)
"""The name of a file that rsync has not received completely."""
UNSUBMITTED = {store.MARK, "input", "log", "done", "started", "request.json"}
SUBMITTED = {"log", "done", "started", "request.json", "ledger.json"}


def sweep(place: Store) -> None:
    """Remove old environments and abandoned copies; an error leaves the rest to the next submission."""
    with contextlib.suppress(OSError):
        now = time.time()
        for run in place.runs.iterdir():
            if GONE.fullmatch(run.name):
                shutil.rmtree(run, ignore_errors=True)
            elif is_unsubmitted(run) and _last_change(run) < now - ABANDONED_DAYS * DAY:
                place.remove(run)
        for left in place.incoming.iterdir():
            # Not st_mtime: it may already be copied from the original file.
            if PARTIAL.fullmatch(left.name) and left.lstat().st_ctime < now - ABANDONED_DAYS * DAY:
                left.unlink()
        for link in place.environments.iterdir():
            if link.is_symlink() and (built := store.BUILD.fullmatch(os.readlink(link))) and built[1] == link.name:
                _sweep_environment(link, now - UNUSED_DAYS * DAY)
        for directory in place.environments.iterdir():
            if (built := store.BUILD.fullmatch(directory.name)) and directory.stat().st_ctime < now - KILLED_DAYS * DAY:
                _sweep_build(directory, directory.with_name(built[1]))


def is_run(run: pathlib.Path) -> bool:
    """Whether a directory is a run, or is empty; a run of an earlier version counts only once it is submitted."""
    names = set(os.listdir(run)) if run.is_dir() else {"a file"}
    return not names or store.MARK in names or SUBMITTED <= names


def is_unsubmitted(run: pathlib.Path) -> bool:
    """Whether a directory is a run that has only what it has before it is submitted."""
    names = os.listdir(run) if store.ID.fullmatch(run.name) and run.is_dir() else []
    left = {name for name in names if not name.startswith((".request.json.", ".ledger.json."))}
    return store.MARK in left and left <= UNSUBMITTED


def _last_change(run: pathlib.Path) -> float:
    """Return when the copy of a run began, or its input last got a file or directory of its own."""
    return max(path.stat().st_mtime for path in (run, run / "input") if path.exists())


def _sweep_build(directory: pathlib.Path, link: pathlib.Path) -> None:
    """Remove the directory of a killed build; a running build holds the lock."""
    with contextlib.suppress(NoAnswer), store.locked(link.with_name(f"{link.name}.lock"), 0):
        if not link.is_symlink() or os.readlink(link) != directory.name:
            shutil.rmtree(directory, ignore_errors=True)


def _sweep_environment(link: pathlib.Path, before: float) -> None:
    used = link / "used"
    if used.exists() and used.stat().st_mtime >= before:
        return
    # A job takes this lock too before it uses the environment, and checks that it still exists.
    with contextlib.suppress(NoAnswer), store.locked(link.with_name(f"{link.name}.lock"), 0):
        if not used.exists() or used.stat().st_mtime < before:
            target = link.parent / os.readlink(link)
            link.unlink()
            shutil.rmtree(target, ignore_errors=True)
