# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a change asks of workers, noted until it is done: others may end this run, and workers may be off."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.slurm.answers import flags, seconds
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import State

RESTARTS = "slurmd-restarts"
DRAINED = "drained"
"""Names of notes: nodes whose slurmd has to be restarted, with since when; nodes that wait for a change, drained."""

REASON = "waits for a change of the configuration (slurm_when_idle)"
"""Not one of the health check's, which would resume the node."""

GRES, DUPLICATE = "gres/", "Duplicate jobid"
SIGNERS = {GRES: ("slurm",), DUPLICATE: ("slurm", "root")}
"""How reasons begin with which Slurm drains a node for good and which a new start of slurmd settles, and in whose name.

slurmctld of 22.05 drains a node that is declared to have GRES before its slurmd can have read so; 24.11 does not. After
a kill, slurmctld gives numbers of the last seconds again (SAVE_MAX_WAIT in src/slurmctld/state_save.c), and drains a
node that still has a job of the same number (src/slurmctld/agent.c), in 22.05.8 in the name of slurmd's user.
"""

OUTDATED, CURRENT = "outdated", "current"
"""A drain from before the start of slurmd, and one that slurmd may still deserve."""


class Workers:
    """The workers of a cluster, and the notes of them in a store."""

    def __init__(self, store: Store, slurm: Slurm) -> None:
        self.store = store
        self.slurm = slurm

    def drain(self, nodes: Iterable[str]) -> None:
        """Drain what nobody else has drained."""
        shown = self.slurm.nodes()
        ours = set(self.store.recall(DRAINED))
        new = {name for name in nodes if name in shown and "DRAIN" not in flags(shown[name])} - ours
        if new:
            self.store.note(DRAINED, dict.fromkeys(ours | new, REASON))
            self.slurm.update(compress(new), "DRAIN", REASON)

    def release(self) -> None:
        """Resume what was drained to wait, also by a run that was killed, but for what somebody drained meanwhile."""
        noted = self.store.recall(DRAINED)
        if not noted:
            return
        shown = self.slurm.nodes()
        ours = {name for name in noted if name in shown and shown[name]["Reason"] == REASON}
        if ours:
            self.slurm.update(compress(ours), "RESUME")
        self.store.note(DRAINED, {})

    def remember(self, nodes: Iterable[str]) -> None:
        """Note that slurmd has to be restarted on some nodes."""
        new = dict.fromkeys(nodes, time.time())
        if new:
            self.store.note(RESTARTS, {**self.store.recall(RESTARTS), **new})

    def outstanding(self) -> list[str]:
        """Return the nodes whose slurmd is older than what it learns at its start only: a change, or a job's end."""
        noted = self.store.recall(RESTARTS)
        shown = self.slurm.nodes()
        doubted = (name for name in shown if drained_by_slurm(shown[name]) and _is_duplicate(shown[name]))
        drained = {name: seconds(shown[name]["ReasonChangedAt"]) for name in doubted}
        new = {name: since for name, since in drained.items() if since > noted.get(name, 0.0)}
        left = _owed({**noted, **new}, shown)
        if left != noted:
            self.store.note(RESTARTS, left)
        return sorted(left)

    def waiting(self) -> dict[str, float]:
        """Return the same nodes with since when, and leave the notes as they are."""
        noted = self.store.recall(RESTARTS)
        return _owed(noted, self.slurm.nodes() if noted else {})


def _owed(noted: Mapping[str, float], shown: Mapping[str, Mapping[str, str]]) -> dict[str, float]:
    """Return those of the notes whose slurmd was not restarted since, or whose node is still drained for it."""
    return {
        name: since
        for name, since in noted.items()
        if name in shown
        and (seconds(shown[name].get("SlurmdStartTime", "")) <= since or drained_by_slurm(shown[name]) == OUTDATED)
    }


def drained_by_slurm(shown: Mapping[str, str]) -> str:
    """Return whether Slurm drained a node for what slurmd tells at its start, and if so whether it was started since.

    >>> drained = {"State": "IDLE+DRAIN", "Reason": "gres/core count reported lower than configured (0 < 4)"}
    >>> signed = {**drained, "ReasonSetByUser": "slurm", "ReasonChangedAt": "2026-11-20T09:00:00"}
    >>> drained_by_slurm({**signed, "SlurmdStartTime": "2026-11-20T09:00:12"}) == OUTDATED
    True
    """
    if not shown or "DRAIN" not in flags(shown):
        return ""
    signers = (signers for start, signers in SIGNERS.items() if shown["Reason"].startswith(start))
    if shown["ReasonSetByUser"] not in next(signers, ()):
        return ""
    started = seconds(shown.get("SlurmdStartTime", ""))
    return OUTDATED if started >= seconds(shown["ReasonChangedAt"]) else CURRENT


def _is_duplicate(shown: Mapping[str, str]) -> bool:
    return shown["Reason"].startswith(DUPLICATE)


def strays(found: Iterable[str], known: State, node: str) -> list[str]:
    """Return the numbers of jobs that were found on a node, and that slurmctld does not have there.

    >>> from ansible.module_utils.slurmstead.slurm.jobs import Job
    >>> strays(["7", "8"], State((Job("7", "RUNNING", nodes=("n1",)), Job("8", "RUNNING", nodes=("n2",)))), "n1")
    ['8']
    """
    return sorted(set(found) - {job.number for job in known.on(node)}, key=int)
