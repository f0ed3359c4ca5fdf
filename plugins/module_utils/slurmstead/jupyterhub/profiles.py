# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Profiles of notebooks: what a user chooses, and the words of sbatch that it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
MEMORY = re.compile(r"[1-9]\d*[KMGT]?")
TIME = re.compile(r"\d+(-\d+(:\d+){0,2}|(:\d+){0,2})")
WORD = re.compile(r"--[a-z][a-z-]*(=[^\s\"'`$\\]+)?")

OPTIONS = {"cpus": "--cpus-per-task", "memory": "--mem", "time": "--time", "partition": "--partition", "gpus": "--gres"}
"""Options of sbatch by the keys of a profile."""

SET_BY_HUB = (
    *(
        "--job-name",
        "--output",
        "--error",
        "--open-mode",
        "--chdir",
        "--export",
        "--export-file",
        "--wrap",
        "--uid",
        "--gid",
    ),
    *("--array", "--requeue", "--no-requeue", "--parsable", "--get-user-env", "--wait"),
)


def words(profile: Mapping[str, Any]) -> list[str]:
    """Return the words of sbatch for a profile.

    >>> words({"cpus": 2, "memory": "4G", "gpus": 1, "options": ["--exclusive"]})
    ['--cpus-per-task=2', '--mem=4G', '--gres=gpu:1', '--exclusive']
    """
    found = []
    for key, option in OPTIONS.items():
        if profile.get(key):
            found.append(f"{option}={'gpu:' if key == 'gpus' else ''}{profile[key]}")
    return [*found, *(profile.get("options") or [])]


def described(profile: Mapping[str, Any]) -> str:
    """Return what a user reads beside the name of a profile.

    >>> described({"cpus": 1, "memory": "2G", "time": "8:00:00"})
    '1 CPU, 2G of memory, at most 8:00:00'
    """
    if profile.get("description"):
        return str(profile["description"])
    cpus, gpus = profile.get("cpus") or 1, profile.get("gpus") or 0
    parts = [f"{cpus} CPU{'s' if cpus != 1 else ''}"]
    parts += [f"{gpus} GPU{'s' if gpus != 1 else ''}"] if gpus else []
    parts += [f"{profile['memory']} of memory"] if profile.get("memory") else []
    parts += [f"partition {profile['partition']}"] if profile.get("partition") else []
    parts += [f"at most {profile['time']}"] if profile.get("time") else []
    return ", ".join(parts)


QUIET = {"partition": "quiet", "time": "1:00:00", "description": "a whole quiet node, at most an hour"}


def for_hub(profiles: Mapping[str, Mapping[str, Any]], *, quiet: bool = False) -> dict[str, dict[str, Any]]:
    """Return profiles as the hub's configuration has them, in their order, with that of quiet nodes.

    >>> for_hub({"small": {"cpus": 1}})
    {'small': {'description': '1 CPU', 'sbatch': ['--cpus-per-task=1']}}
    """
    known = {**profiles, **({"quiet": QUIET} if quiet and "quiet" not in profiles else {})}
    return {name: {"description": described(one), "sbatch": words(one)} for name, one in known.items()}
