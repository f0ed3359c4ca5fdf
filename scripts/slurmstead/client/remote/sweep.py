"""Removes environments and copies that are no longer needed; part of each submission.

The user may have named a directory with other files in it, so only what certainly is ours is removed.
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

GONE = re.compile(rf"\.{store.ID.pattern}\.[0-9a-f]{{8}}")
"""The name of a run that Store.remove did not remove completely."""
PARTIAL = re.compile(r"\..*\.[A-Za-z0-9]{6}", re.DOTALL)
"""The name of a file that rsync has not received completely."""
UNSUBMITTED = {"input", "log", "done", "started", "request.json"}


def sweep(place: Store) -> None:
    """Remove old environments and abandoned copies; an error leaves the rest to the next submission."""
    with contextlib.suppress(OSError):
        now = time.time()
        for run in place.runs.iterdir():
            if GONE.fullmatch(run.name):
                shutil.rmtree(run, ignore_errors=True)
            elif (run / "input").exists() and is_unsubmitted(run) and run.stat().st_mtime < now - ABANDONED_DAYS * DAY:
                place.remove(run)
        for left in place.incoming.iterdir():
            # Not st_mtime: it may already be copied from the original file.
            if PARTIAL.fullmatch(left.name) and left.lstat().st_ctime < now - ABANDONED_DAYS * DAY:
                left.unlink()
        for link in place.environments.iterdir():
            if link.is_symlink() and os.readlink(link).startswith(f"{link.name}.build-"):
                _sweep_environment(link, now - UNUSED_DAYS * DAY)
        for directory in place.environments.glob("*.build-*"):
            if directory.stat().st_ctime < now - KILLED_DAYS * DAY:
                _sweep_build(directory)


def is_unsubmitted(run: pathlib.Path) -> bool:
    """Whether a directory has only what a run has before it is submitted."""
    names = os.listdir(run) if store.ID.fullmatch(run.name) and run.is_dir() else ["not a run"]
    return UNSUBMITTED.issuperset(name for name in names if not name.startswith((".request.json.", ".ledger.json.")))


def _sweep_build(directory: pathlib.Path) -> None:
    """Remove the directory of a killed build; a running build holds the lock."""
    link = directory.with_name(directory.name.partition(".build-")[0])
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
