# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The processes that use files below a directory. Never opens the directory, whose server may be lost."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from collections.abc import Iterable, Iterator

from ansible.module_utils.slurmstead.storage import disks

JOB = b"SLURM_JOB_ID="
"""In the environment of a job's processes."""


def users(directories: Iterable[str], *, of_jobs: bool) -> list[str]:
    """Return a description of each process that has a file or directory below one of the directories open.

    :param of_jobs: also return the processes of jobs
    """
    places = tuple(directories)
    found = []
    for entry in sorted(os.listdir(disks.PROC), key=lambda name: (len(name), name)):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        # A process may end at any moment.
        with contextlib.suppress(OSError):
            used = next((path for path in _paths(entry) if _below(path, places)), None)
            if used and (of_jobs or not _is_of_job(entry)):
                found.append(f"{_name(entry)} uses {used}")
    return found


def _below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _paths(pid: str) -> Iterator[str]:
    here = disks.PROC / pid
    for link in (here / "cwd", here / "exe", *(here / "fd").iterdir()):
        with contextlib.suppress(OSError):
            yield os.readlink(link)
    for line in (here / "maps").read_text(errors="replace").splitlines():
        mapped = re.search(r"\s(/.*)", line)
        if mapped:
            yield mapped[1]


def _is_of_job(pid: str) -> bool:
    variables = (disks.PROC / pid / "environ").read_bytes().split(b"\0")
    return any(variable.startswith(JOB) for variable in variables)


def _name(pid: str) -> str:
    number = (disks.PROC / pid).stat().st_uid
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = str(number)
    return f"{disks.read_text(disks.PROC / pid / 'comm')} (process {pid} of {user})"
