# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Reasons to refuse the restore of an archive onto a control node. Pure functions; each text is a line of a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm.jobs import State


@dataclass(frozen=True)
class Target:
    """The cluster onto which the archive would be restored."""

    cluster: str
    """ClusterName in its inventory"""
    version: str
    """version of the installed slurmctld, or of the one that this release installs; empty if neither is known"""
    queue: State = State()
    """its queue; not heard if it cannot be read"""
    users: Mapping[str, int] = field(default_factory=dict)
    """numeric ID by name, of users on the node or in the inventory"""


def refusals(manifest: Mapping[str, Any], target: Target, force: bool = False) -> list[str]:
    """Return what prevents a restore; `force` discards the jobs on the control node, and nothing else."""
    found = [*_cluster(manifest, target), *_version(str(manifest["slurm"]), target.version)]
    found += _owners(manifest["owners"], target.users)
    if not force:
        found += _jobs(target.queue)
    return found


def _jobs(queue: State) -> list[str]:
    if not queue.heard:
        return ["the queue of the control node cannot be read: start slurmctld there; --force discards all its jobs"]
    if not queue.live:
        return []
    return [
        f"the control node has jobs, which would be lost: {slurm_jobs.in_words(queue.live)}. "
        "Let them end, or cancel them; --force discards them"
    ]


def _cluster(manifest: Mapping[str, Any], target: Target) -> list[str]:
    if manifest["cluster"] == target.cluster:
        return []
    return [
        f"the archive is of the cluster {manifest['cluster']}, and this inventory describes {target.cluster}: "
        "use the archive or the inventory (-i) of the other cluster"
    ]


def _version(archived: str, installed: str) -> list[str]:
    """slurmctld can read the state of every version whose messages it understands.

    >>> _version("24.11.5", "22.05.8")[0]
    'the archive is of Slurm 24.11.5, and slurmctld here is 22.05.8, which cannot read its state: install 24.11 first'
    """
    new, old = conf_versions.series(installed), conf_versions.series(archived)
    if not installed or not archived:
        return []
    known = new in conf_versions.OLDEST_PEER
    if conf_versions.can_talk(new, old) if known else conf_versions.number(old) <= conf_versions.number(new):
        return []
    way = f"install {old} first"
    if conf_versions.number(old) < conf_versions.number(new):
        way = f"restore it onto {old}, then upgrade in steps"
    return [
        f"the archive is of Slurm {archived}, and slurmctld here is {installed}, which cannot read its state: {way}"
    ]


def _owners(owners: Mapping[str, int], users: Mapping[str, int]) -> list[str]:
    """Jobs belong to numeric user IDs; with another ID they would run as another user.

    >>> _owners({"alice": 2001}, {"alice": 2007})
    ['alice has jobs in the archive as number 2001, and is number 2007 here: declare uid: 2001 in accounts_users']
    >>> _owners({"alice": 2001}, {"bob": 2001})
    ['alice has jobs in the archive as number 2001, which is bob here: give bob another number']
    """
    names = {number: name for name, number in users.items()}
    found = []
    for name, number in sorted(owners.items()):
        if name in users and users[name] != number:
            found.append(
                f"{name} has jobs in the archive as number {number}, and is number {users[name]} here: "
                f"declare uid: {number} in accounts_users"
            )
        elif names.get(number, name) != name:
            found.append(
                f"{name} has jobs in the archive as number {number}, which is {names[number]} here: "
                f"give {names[number]} another number"
            )
    return found
