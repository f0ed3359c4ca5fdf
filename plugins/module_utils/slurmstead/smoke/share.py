"""The directory of a smoke test on the share. Every function here may hang on a dead NFS server."""

from __future__ import annotations

import os
import pwd
import shutil
import time

PREFIX = ".slurmstead-smoke-"

STALE = 3600
"""Age in seconds after which the directory of another run must come from a killed one."""


def make(share: str, nonce: str) -> str:
    """Create the directory, with a file from control; remove the directories of this user's killed runs.

    It is in the user's home if that is on the share.
    """
    share = os.path.realpath(share)
    home = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    root = home if home.startswith(share + "/") else share
    for entry in (entry for entry in os.scandir(root) if entry.name.startswith(PREFIX)):
        status = entry.stat(follow_symlinks=False)
        if status.st_uid == os.getuid() and time.time() - status.st_mtime > STALE:
            shutil.rmtree(entry.path, ignore_errors=True)
    directory = os.path.join(root, PREFIX + nonce)
    os.mkdir(directory, 0o700)
    with open(os.path.join(directory, "control"), "w") as file:
        file.write(nonce)
    return directory


def read(directory: str) -> dict[str, str]:
    """Return each worker's file, by the worker's name, and the output of the batch job as `batch.out`."""
    texts: dict[str, str] = {}
    # Open a name only after it is listed; otherwise the NFS client would cache it as missing.
    for name in os.listdir(directory):
        if name.startswith("from-") or name == "batch.out":
            with open(os.path.join(directory, name)) as file:
                texts[name.removeprefix("from-")] = file.read(4096)
    return texts
