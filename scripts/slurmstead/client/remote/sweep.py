"""Removes environments and copies that are no longer needed; part of each submission."""

import contextlib
import os
import pathlib
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


def sweep(place: Store) -> None:
    """Remove old environments and abandoned copies; an error leaves the rest to the next submission."""
    with contextlib.suppress(OSError):
        now = time.time()
        for run in place.runs.iterdir():
            if run.name.startswith("."):
                shutil.rmtree(run, ignore_errors=True)
            elif not (run / "ledger.json").exists() and run.stat().st_mtime < now - ABANDONED_DAYS * DAY:
                place.remove(run)
        for left in place.incoming.iterdir():
            # Not st_mtime: it may already be copied from the original file.
            if left.stat().st_ctime < now - ABANDONED_DAYS * DAY:
                left.unlink()
        for link in place.environments.iterdir():
            if link.is_symlink():
                _sweep_environment(link, now - UNUSED_DAYS * DAY)
        for directory in place.environments.glob("*.build-*"):
            if directory.stat().st_ctime < now - KILLED_DAYS * DAY:
                _sweep_build(directory)


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
