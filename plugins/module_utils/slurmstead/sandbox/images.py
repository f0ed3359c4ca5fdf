# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The images on the share: their names, what is known of each, and the jobs that use them.

An image is a directory: `rootfs`, config.json, which Slurm reads, and image.json, which says where it comes from.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
RELEASE = re.compile(r"[a-z]+")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")

PATH = "/usr/local/bin:/usr/bin:/bin"
VENV = "/opt/venv"
"""Where the packages of requirements.txt are."""

NOT_OURS = ("HOME", "HOSTNAME", "PWD", "SHLVL", "TERM", "USER")
"""Variables of an archive that a job has itself."""


ENDED = (
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("REVOKED", "TIMEOUT"),
)
"""States of jobs that slurmctld still remembers."""

ANY = "*"
"""In place of an image: a directory elsewhere, whose config.json may name any image."""


class ImageError(Exception):
    """An image cannot be made or removed. The message says what to do."""


def refusal(name: str) -> str:
    """Say why a name cannot be that of an image; empty if it can.

    >>> refusal("python-3.11"), refusal("../python")
    ('', "'../python' is not a name for an image: use a-z, 0-9, `.`, `_` and `-`, at most 63 of them, as in python-3")
    """
    if NAME.fullmatch(name):
        return ""
    return f"{name!r} is not a name for an image: use a-z, 0-9, `.`, `_` and `-`, at most 63 of them, as in python-3"


def bundle(environment: list[str]) -> dict[str, Any]:
    """Return config.json. Slurm wants all of it; only `env` counts."""
    process = {"args": ["sh"], "cwd": "/", "env": environment}
    return {"ociVersion": "1.0.0", "root": {"path": "rootfs"}, "process": process}


def environment(unpacked: Mapping[str, Any]) -> list[str]:
    """Return the variables of an archive, from the config.json that umoci wrote.

    >>> environment({"process": {"env": ["PATH=/bin", "HOME=/root", "LANG=C.UTF-8"]}})
    ['PATH=/bin', 'LANG=C.UTF-8']
    """
    given = unpacked.get("process", {}).get("env", [])
    return [entry for entry in given if entry.partition("=")[0] not in NOT_OURS]


def listed(store: Path) -> list[dict[str, Any]]:
    """Return all images with what is known of them, by name. One that was made by hand has no date and no size."""
    found = []
    for path in sorted(store.iterdir()) if store.is_dir() else []:
        if NAME.fullmatch(path.name) and (path / "config.json").is_file():
            note = path / "image.json"
            known = json.loads(note.read_text()) if note.is_file() else {}
            found.append({"source": "made by hand", "made": "", "bytes": 0, **known, "name": path.name})
    return found


def users(jobs: str, steps: str, images: str) -> dict[str, list[str]]:
    """Return the numbers of the jobs that use each image, or ANY, from `scontrol --oneliner show job`, `… step`.

    A line break in the name of a job can add lines that look like other jobs, but hides no image that is in use.

    >>> jobs = "JobId=7 WorkDir=/home/a Container=../../share/images/python\\nJobId=8 JobName=x WorkDir=/home/a"
    >>> jobs += "\\nJobId=6 JobState=FAILED WorkDir=/ Container=/share/images/python"
    >>> users(jobs, "StepId=8.0 UserId=1 Container=/share/images/r/ State=RUNNING", "/share/images")
    {'python': ['7'], 'r': ['8']}
    >>> users("JobId=5 WorkDir=/home/a Container=bundle\\nJobId=4 Container=(null)", "", "/share/images")
    {'*': ['5']}
    >>> users("JobId=7 WorkDir=/ Container=share/images/r\\nJobId=9\\nJobId=7 WorkDir=/a", "", "/share/images")
    {'*': ['7'], 'r': ['7']}
    """
    found: dict[str, set[str]] = {}
    where: dict[str, set[str]] = {}
    for line in jobs.splitlines():
        fields = dict(_fields(line))
        where.setdefault(fields.get("JobId", ""), set()).add(fields.get("WorkDir", "/"))
    for line in (*jobs.splitlines(), *steps.splitlines()):
        fields = dict(_fields(line))
        number = (fields.get("JobId") or fields.get("StepId", "")).partition(".")[0]
        if not number or fields.get("Container", "") in ("", "(null)") or fields.get("JobState") in ENDED:
            continue
        for start in where.get(number, {"/"}):
            directory, name = os.path.split(os.path.realpath(os.path.join(start, fields["Container"])))
            image = name if directory == os.path.realpath(images) else ANY
            found.setdefault(image, set()).add(number)
    return {name: sorted(numbers, key=int) for name, numbers in sorted(found.items())}


def jobs_of(name: str, used: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the numbers of the jobs that use an image, or may use it.

    >>> jobs_of("python", {"*": ["5"], "python": ["40", "7"], "r": ["8"]})
    ['5', '7', '40']
    """
    return sorted({*used.get(name, []), *used.get(ANY, [])}, key=int)


def _fields(line: str) -> Iterator[tuple[str, str]]:
    """Return the fields of a line of scontrol. A value with spaces is cut; none that is used here has any."""
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals:
            yield key, value
