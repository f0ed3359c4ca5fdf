# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for sandboxes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ansible.module_utils.slurmstead.inventory.model import Violation, shown

NEVER = ("/", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr")
"""Directories that an image has itself."""

FEWEST = 64


def sandbox_paths_can_be_shown(sandbox_paths: Sequence[str]) -> Iterator[Violation]:
    """A directory that images show is not one of theirs."""
    for path in sandbox_paths:
        if not path.startswith("/") or os.path.normpath(path) in NEVER:
            yield (
                "sandbox_paths",
                f"has {shown(path)}, which an image has itself or which is not a full path",
                "Name a directory of data, as in /share/data",
            )


def sandbox_processes_are_possible(sandbox_processes: int) -> Iterator[Violation]:
    """A program can start."""
    if sandbox_processes < FEWEST:
        yield "sandbox_processes", f"is {sandbox_processes}, too few for a program", f"Write at least {FEWEST}"
