"""Removing what nobody needs any more; a part of each submission."""

import contextlib
import os
import pathlib
import shutil
import time

from slurmstead.client.remote import store
from slurmstead.client.remote.errors import NoAnswer
from slurmstead.client.remote.store import Store

UNUSED_DAYS = 30
"""After which an environment that no job has used is removed."""
ABANDONED_DAYS = 7
"""After which a copy that never became a job is removed."""

DAY = 86400


def sweep(place: Store) -> None:
    """Remove old environments and abandoned copies; what cannot be removed now is left to the next time."""
    with contextlib.suppress(OSError):
        now = time.time()
        for run in place.runs.iterdir():
            if not (run / "ledger.json").exists() and run.stat().st_mtime < now - ABANDONED_DAYS * DAY:
                shutil.rmtree(run, ignore_errors=True)
        for left in place.incoming.iterdir():
            # Its time of change can already be that of the file that it is a copy of.
            if left.stat().st_ctime < now - ABANDONED_DAYS * DAY:
                left.unlink()
        for link in place.environments.iterdir():
            if link.is_symlink():
                _sweep_environment(link, now - UNUSED_DAYS * DAY)
        for directory in place.environments.glob("*.build-*"):
            _sweep_build(directory)


def _sweep_build(directory: pathlib.Path) -> None:
    """Remove what a killed build left; who builds or makes the link holds the lock."""
    link = directory.with_name(directory.name.partition(".build-")[0])
    with contextlib.suppress(NoAnswer), store.locked(link.with_name(f"{link.name}.lock"), 0):
        if not link.is_symlink() or os.readlink(link) != directory.name:
            shutil.rmtree(directory, ignore_errors=True)


def _sweep_environment(link: pathlib.Path, before: float) -> None:
    used = link / "used"
    if used.exists() and used.stat().st_mtime >= before:
        return
    # Whoever wants to use it takes this lock, too, and looks whether it is still there.
    with contextlib.suppress(NoAnswer), store.locked(link.with_name(f"{link.name}.lock"), 0):
        if not used.exists() or used.stat().st_mtime < before:
            target = link.parent / os.readlink(link)
            link.unlink()
            shutil.rmtree(target, ignore_errors=True)
