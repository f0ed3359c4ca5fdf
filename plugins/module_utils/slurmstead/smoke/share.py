"""The directory of a smoke test on the share. Anything here may hang on a dead NFS server."""

from __future__ import annotations

import os
import pwd
import shutil
import time

PREFIX = ".slurmstead-smoke-"

STALE = 3600
"""Seconds after which the directory of another run is what a killed one left."""


def make(share: str, nonce: str) -> str:
    """Make the directory, with a file that control wrote; remove what killed runs of this user left.

    It is in the home of the user if that is on the share.
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
    """Return what each worker wrote, by its name, and the output of the batch job as `batch.out`."""
    texts: dict[str, str] = {}
    # A name is opened only once it is listed, so that the client does not remember it as missing.
    for name in os.listdir(directory):
        if name.startswith("from-") or name == "batch.out":
            with open(os.path.join(directory, name)) as file:
                texts[name.removeprefix("from-")] = file.read(4096)
    return texts
