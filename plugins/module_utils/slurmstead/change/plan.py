# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The differences between two configurations, the action that each requires, and the action for all together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible.module_utils.slurmstead.conf.needs import Action, Need, While
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job, in_words


@dataclass(frozen=True)
class Change:
    """One difference: its subject, and the action that it requires."""

    what: str
    old: str
    new: str
    need: Need
    slurmd: frozenset[str] = frozenset()
    """The nodes on which slurmd is restarted."""
    reason: str = ""
    blocking: tuple[Job, ...] = ()
    """The jobs that it would harm."""

    @property
    def refused(self) -> bool:
        """Whether it is refused now."""
        return bool(self.blocking)

    @property
    def harmless(self) -> Change:
        """The same change if no job depends on it."""
        return replace(self, blocking=())

    @property
    def difference(self) -> str:
        """Both values."""
        return f"{self.what}: {self.old} → {self.new}" if self.old or self.new else self.what

    @property
    def line(self) -> str:
        """The change in readable form."""
        if self.refused:
            return f"{self.difference}: refused{self.because}"
        done = {Action.NOTHING: "nothing", Action.RECONFIGURE: "reconfigure", Action.RESTART: "restart slurmctld"}
        words = done[self.need.action]
        if self.slurmd:
            words += f", restart slurmd on {compress(self.slurmd)}"
        return f"{self.difference}: {words}{f' ({self.reason})' if self.reason else ''}"

    @property
    def because(self) -> str:
        """Why it is refused."""
        kind = "any job runs or waits" if self.need.refused is While.ANY else "jobs run there"
        return f" while {kind}: {in_words(self.blocking)}{f'; {self.reason}' if self.reason else ''}"


@dataclass(frozen=True)
class Plan:
    """All changes, and the action that they require together."""

    changes: tuple[Change, ...] = ()

    @property
    def action(self) -> Action:
        """The action on slurmctld."""
        return max((change.need.action for change in self.changes), default=Action.NOTHING)

    @property
    def restart_slurmd(self) -> frozenset[str]:
        """The nodes on which slurmd is restarted, after slurmctld, because workers fetch their files from slurmctld."""
        return frozenset(node for change in self.changes for node in change.slurmd)

    @property
    def refusals(self) -> list[str]:
        """A line for each refused change."""
        return [change.line for change in self.changes if change.refused]

    @property
    def blocked_nodes(self) -> frozenset[str]:
        """The nodes that must become idle."""
        return frozenset(node for change in self.changes for job in change.blocking for node in job.nodes)

    @property
    def waiting_helps(self) -> bool:
        """Whether no refusal remains once the running jobs have ended, so that draining helps."""
        refused = [change for change in self.changes if change.refused]
        return all(change.need.refused is While.RUNNING for change in refused)

    @property
    def lines(self) -> list[str]:
        """The plan in readable form: a line for each change, and the actions."""
        return [change.line for change in self.changes] + ([self.total] if self.changes else [])

    @property
    def total(self) -> str:
        """The actions, in one line."""
        if self.refusals:
            return "refused: nothing is changed"
        done = {Action.NOTHING: "no daemon is touched", Action.RECONFIGURE: "scontrol reconfigure"}
        words = [done.get(self.action, "restart slurmctld, and make the workers fetch its files")]
        if self.restart_slurmd:
            words.append(f"restart slurmd on {compress(self.restart_slurmd)}")
        return "then: " + ", ".join(words)
