# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a change asks of workers, noted until it is done: others may end this run, and workers may be off."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ansible.module_utils.slurmstead.config_sets import Store
from ansible.module_utils.slurmstead.hostlist import compress
from ansible.module_utils.slurmstead.slurm_daemons import Slurm, flags, seconds

RESTARTS = "slurmd-restarts"
DRAINED = "drained"
"""Names of notes: nodes whose slurmd has to be restarted, with since when; nodes that wait for a change, drained."""

REASON = "waits for a change of the configuration (slurm_when_idle)"
"""Not one of the health check's, which would resume the node."""

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
        new = {name for name in nodes if name in shown and "DRAIN" not in shown[name].get("State", "")} - ours
        if new:
            self.store.note(DRAINED, dict.fromkeys(ours | new, REASON))
            self.slurm.update(compress(new), "DRAIN", REASON)

    def release(self) -> None:
        """Resume what was drained to wait, also by a run that was killed."""
        noted = self.store.recall(DRAINED)
        if not noted:
            return
        ours = noted.keys() & self.slurm.nodes().keys()
        if ours:
            self.slurm.update(compress(ours), "RESUME")
        self.store.note(DRAINED, {})

    def remember(self, nodes: Iterable[str]) -> None:
        """Note that slurmd has to be restarted on some nodes."""
        new = dict.fromkeys(nodes, time.time())
        if new:
            self.store.note(RESTARTS, {**self.store.recall(RESTARTS), **new})

    def outstanding(self) -> list[str]:
        """Return the nodes whose slurmd is older than the last change that it reads at its start only."""
        left = self.waiting()
        if left != self.store.recall(RESTARTS):
            self.store.note(RESTARTS, left)
        return sorted(left)

    def waiting(self) -> dict[str, float]:
        """Return the same nodes with since when, and leave the notes as they are."""
        noted = self.store.recall(RESTARTS)
        shown = self.slurm.nodes() if noted else {}
        return {
            name: since
            for name, since in noted.items()
            if name in shown
            and (seconds(shown[name].get("SlurmdStartTime", "")) <= since or drained_for_gres(shown[name]) == OUTDATED)
        }


def drained_for_gres(shown: Mapping[str, str]) -> str:
    """Return whether Slurm drained a node for want of GRES, and if so whether its slurmd was started since.

    Up to which version a slurmd that has not read of new GRES has its node drained, and for good, is not documented:
    22.05 does it, 24.11 does not.

    >>> drained = {"State": "IDLE+DRAIN", "Reason": "gres/core count reported lower than configured (0 < 4)"}
    >>> signed = {**drained, "ReasonSetByUser": "slurm", "ReasonChangedAt": "2026-11-20T09:00:00"}
    >>> drained_for_gres({**signed, "SlurmdStartTime": "2026-11-20T09:00:12"}) == OUTDATED
    True
    """
    by_slurm = shown and "DRAIN" in flags(shown) and shown["ReasonSetByUser"] == "slurm"
    if not by_slurm or not shown["Reason"].startswith("gres/"):
        return ""
    started = seconds(shown.get("SlurmdStartTime", ""))
    return OUTDATED if started >= seconds(shown["ReasonChangedAt"]) else CURRENT
