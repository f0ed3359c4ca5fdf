# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A worker that is given no new jobs for a while. Those that it has go on, and are looked for afterwards."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.reach.deadline import wait_while
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm.answers import flags
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.jobs import Job, State
from ansible.module_utils.slurmstead.workers import reasons

SETTLE = 240.0
"""Seconds in which slurmctld has to answer and the worker to register; emulated ones are slow."""

REMEMBERED = 240.0
"""Seconds for which slurmctld shows a job that has ended, at least (MinJobAge)."""

PAUSE = 2.0

DEAF = "slurmctld does not answer; see `journalctl -u slurmctld`"

SILENT = frozenset({"DOWN", "NOT_RESPONDING"})


class PauseError(Exception):
    """The worker cannot be given back; the text says what to do."""


@dataclass(frozen=True)
class Before:
    """What was before: when slurmd started, whether slurmctld heard it, and the jobs that must survive."""

    slurmd: str = ""
    silent: bool = False
    jobs: tuple[Job, ...] = ()
    at: float = field(default_factory=time.time)


def paused(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the nodes that a run of ours has paused and not given back."""
    return reasons.drained(nodes, nodes, reasons.UPGRADE)


class Worker:
    """A machine of the cluster. If it is not a worker, only slurmctld and all of its jobs are checked."""

    def __init__(self, name: str, slurm: Slurm) -> None:
        self.name = name
        self.slurm = slurm

    def pause(self, check_mode: bool) -> tuple[bool, Before]:
        """Drain it; return whether it accepted jobs until now, and its state before. Raises PauseError."""
        shown = self._nodes().get(self.name)
        jobs = self._jobs(self.slurm.state(), shown is not None)
        if shown is None:
            return False, Before(jobs=jobs)
        open_so_far = not reasons.is_drained(shown)
        if open_so_far and not check_mode:
            self.slurm.update(self.name, "DRAIN", reasons.UPGRADE)
        return open_so_far, Before(shown.get("SlurmdStartTime", ""), bool(SILENT & flags(shown)), jobs)

    def give_back(self, before: Before, restarted: bool) -> bool:
        """Let it have new jobs again, if it was ours to keep them away; returns whether it was.

        :param restarted: whether slurmd has been restarted since, so that it has to register
        :raises PauseError: slurmctld or slurmd is not as before, or a job was lost
        """
        if missing := wait_while(lambda: self._missing(before, restarted), SETTLE, PAUSE):
            raise PauseError(missing)
        self._account_for(before)
        if self.name not in paused(self._nodes()):
            return False
        self.slurm.update(self.name, "RESUME")
        return True

    def _nodes(self) -> Mapping[str, Mapping[str, str]]:
        nodes = self.slurm.nodes()
        if not nodes:
            # On a timeout every worker would look unknown to Slurm.
            raise PauseError(DEAF)
        return nodes

    def _jobs(self, state: State, worker: bool) -> tuple[Job, ...]:
        return state.on(self.name) if worker else state.live

    def _missing(self, before: Before, restarted: bool) -> str:
        """Return what still keeps the worker from being given back; empty if nothing does."""
        nodes = self.slurm.nodes()
        if not (self.slurm.answers() and nodes):
            return DEAF
        shown = nodes.get(self.name)
        if shown is None or before.silent:
            return ""
        if restarted and shown.get("SlurmdStartTime", "") == before.slurmd:
            return "slurmd was restarted and has not registered; see `journalctl -u slurmd` there"
        if SILENT & flags(shown):
            return f"slurmctld cannot reach slurmd ({shown['State']}); see `journalctl -u slurmd` there"
        return ""

    def _account_for(self, before: Before) -> None:
        """Look for the jobs that were there before. Raises PauseError."""
        state = self.slurm.state()
        recent = time.time() - before.at < REMEMBERED
        lost = slurm_jobs.lost(before.jobs, slurm_jobs.by_number(state), ends_show=recent) if state.heard else []
        if lost:
            words = ", ".join(f"job {job.number} was {what}" for job, what in lost)
            raise PauseError(f"{words}; see slurmctld's log")
