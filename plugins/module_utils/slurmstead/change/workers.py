# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Pending actions on workers, recorded until they are done: this run may be killed, and workers may be off."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.slurm.answers import seconds
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import State
from ansible.module_utils.slurmstead.workers.reasons import (
    CHANGE,
    OUTDATED,
    drained_by_slurm,
    is_duplicate,
    is_left_alone,
)

RESTARTS = "slurmd-restarts"
DRAINED = "drained"
"""Names of notes: nodes whose slurmd must be restarted, with the time of the request; nodes drained for a change."""


class Workers:
    """The workers of a cluster, and the notes about them in a store."""

    def __init__(self, store: Store, slurm: Slurm) -> None:
        self.store = store
        self.slurm = slurm

    def drain(self, nodes: Iterable[str]) -> None:
        """Drain the nodes that are not drained yet."""
        shown = self.slurm.nodes()
        ours = set(self.store.recall(DRAINED))
        new = {name for name in nodes if name in shown and not is_left_alone(shown[name])} - ours
        if new:
            self.store.note(DRAINED, dict.fromkeys(ours | new, CHANGE))
            self.slurm.update(compress(new), "DRAIN", CHANGE)

    def release(self) -> None:
        """Resume nodes that this or a killed run drained for a change, unless an administrator drained them since."""
        noted = self.store.recall(DRAINED)
        if not noted or not (shown := self.slurm.nodes()):
            # Without an answer the next run resumes them.
            return
        ours = {name for name in noted if name in shown and shown[name]["Reason"] == CHANGE}
        if ours:
            self.slurm.resume({name: shown[name] for name in ours})
        self.store.note(DRAINED, {})

    def remember(self, nodes: Iterable[str]) -> None:
        """Record that slurmd must be restarted on some nodes."""
        new = dict.fromkeys(nodes, time.time())
        if new:
            self.store.note(RESTARTS, {**self.store.recall(RESTARTS), **new})

    def outstanding(self) -> list[str]:
        """Return the nodes whose slurmd must be restarted to load a change, or to notice the end of a job."""
        recorded, now = self.store.recall(RESTARTS), time.time()
        # The clock may have been ahead: no restart would be later than such a note.
        noted = {name: min(since, now) for name, since in recorded.items()}
        if not (shown := self.slurm.nodes()):
            return sorted(noted)
        doubted = (name for name in shown if is_duplicate(shown[name]))
        drained = {name: seconds(shown[name]["ReasonChangedAt"]) for name in doubted}
        new = {name: since for name, since in drained.items() if since > noted.get(name, 0.0)}
        left = _owed({**noted, **new}, shown)
        if left != recorded:
            self.store.note(RESTARTS, left)
        return sorted(left)

    def waiting(self) -> dict[str, float]:
        """Return the same nodes with the times of the requests, without changing the notes."""
        noted = self.store.recall(RESTARTS)
        return _owed(noted, self.slurm.nodes() if noted else {})


def _owed(noted: Mapping[str, float], shown: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Return the recorded nodes whose slurmd has not been restarted since, or that are still drained for it."""
    return {
        name: since
        for name, since in noted.items()
        if name in shown
        and (seconds(shown[name].get("SlurmdStartTime", "")) <= since or drained_by_slurm(shown[name]) == OUTDATED)
    }


def strays(found: Iterable[str], known: State, node: str) -> list[str]:
    """Return the numbers of jobs found on a node that slurmctld does not know there.

    >>> from ansible.module_utils.slurmstead.slurm.jobs import Job
    >>> strays(["7", "8"], State((Job("7", "RUNNING", nodes=("n1",)), Job("8", "RUNNING", nodes=("n2",)))), "n1")
    ['8']
    """
    return sorted(set(found) - {job.number for job in known.on(node)}, key=int)
