# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for sandboxes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.conf.partitions import names
from ansible.module_utils.slurmstead.inventory.model import Violation, shown
from ansible.module_utils.slurmstead.sandbox.images import NAME

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


def sandbox_images_have_names(sandbox_network_images: Sequence[str]) -> Iterator[Violation]:
    """An image is named as `stead image build` names it."""
    for name in sandbox_network_images:
        if not NAME.fullmatch(name):
            yield (
                "sandbox_network_images",
                f"has {shown(name)}, which cannot be the name of an image",
                "Write a name that `stead image list` shows",
            )


def sandboxes_are_demanded_where_they_are(
    sandbox_enabled: bool,
    sandbox_partitions: Sequence[str],
    sandbox_accounts: Sequence[str],
    slurm_partitions: Mapping[str, Any],
    slurm_config: Mapping[str, Any],
) -> Iterator[Violation]:
    """A demand can be met, and slurmctld can check it."""
    known = names(slurm_partitions)
    unknown = [name for name in sandbox_partitions if name not in known]
    if unknown:
        yield (
            "sandbox_partitions",
            f"has {shown(unknown[0])}, which is not a partition",
            f"Write one of {', '.join(known)}",
        )
    for name, wanted in (("sandbox_partitions", sandbox_partitions), ("sandbox_accounts", sandbox_accounts)):
        if wanted and not sandbox_enabled:
            yield name, "is set, but no job can run in an image", "Set sandbox_enabled too, or remove it"
        elif wanted and (other := slurm_config.get("JobSubmitPlugins")):
            said = f"needs its own job_submit.lua, but slurm_config has JobSubmitPlugins={other}"
            yield name, said, "Remove one of both"
