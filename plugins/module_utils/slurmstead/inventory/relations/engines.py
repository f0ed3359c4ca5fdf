# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for services in addition to Slurm: Celery's broker, and Julia."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import Violation, shown

LEAST_MEMORY = 192
"""Minimum memory of RabbitMQ in MiB: without a task it uses 130 (3.10 and 4.0, on amd64)."""

LEAST_RESULTS = 16
"""Minimum memory of a user's Redis in MiB: it uses 2 without a result, and each connection counts."""

ARCHITECTURES = ("x86_64", "aarch64")


def broker_users_are_named_once(celery_broker_users: Sequence[str]) -> Iterator[Violation]:
    """Each user of the broker is named once."""
    for user, times in Counter(celery_broker_users).items():
        if times > 1:
            yield "celery_broker_users", f"has {user} {times} times", "Name each user once"


def broker_limits_are_possible(
    celery_broker_memory: int, celery_broker_results_memory: int, celery_broker_longest_task: int
) -> Iterator[Violation]:
    """A memory limit below RabbitMQ's own usage would block every task; a time limit of 0 hours would repeat each."""
    if celery_broker_results_memory < LEAST_RESULTS:
        yield (
            "celery_broker_results_memory",
            f"is {celery_broker_results_memory} MiB, and Redis would refuse the first results",
            f"Give it at least {LEAST_RESULTS}",
        )
    if celery_broker_memory < LEAST_MEMORY:
        yield (
            "celery_broker_memory",
            f"is {celery_broker_memory} MiB, but RabbitMQ needs 130 for itself",
            f"Give it at least {LEAST_MEMORY}",
        )
    if celery_broker_longest_task < 1:
        yield "celery_broker_longest_task", f"is {celery_broker_longest_task}", "Write at least 1 (an hour)"


def julia_archives_are_known(julia_archives: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    """A version must be a valid directory name, and every archive needs a checksum."""
    for archive in julia_archives:
        version, checksum = str(archive["version"]), str(archive["sha256"])
        if not re.fullmatch(r"\d+\.\d+\.\d+(-[a-z0-9]+)?", version):
            yield "julia_archives", f"has the version {shown(version)}", "Write all of it, as in 1.10.5"
        if not re.fullmatch(r"[0-9a-f]{64}", checksum):
            yield (
                "julia_archives",
                f"has the sha256 {shown(checksum)} for {version}, which is not 64 hexadecimal digits",
                "Copy it from the list of checksums that julialang.org has for each version",
            )
    names = Counter((str(archive["version"]), archive["architecture"]) for archive in julia_archives)
    for (version, architecture), times in names.items():
        if times > 1:
            yield "julia_archives", f"has {version} for {architecture} {times} times", "Keep one of them"


def julia_is_on_the_share(
    julia_archives: Sequence[Mapping[str, Any]], julia_directory: str, nfs_client_path: str
) -> Iterator[Violation]:
    """Julia is on the share, so that all nodes run the same one."""
    if julia_archives and not julia_directory.startswith(f"{nfs_client_path}/"):
        yield (
            "julia_directory",
            f"is {julia_directory}, which is not below the share, {nfs_client_path}",
            f"Write a directory such as {nfs_client_path}/julia",
        )
