# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A pause, in which a worker gets no new jobs. Its running jobs continue, and are checked afterwards."""

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
"""Timeout in seconds for slurmctld to answer and the worker to register; emulated machines are slow."""

PAUSE = 2.0

DEAF = "slurmctld does not answer; see `journalctl -u slurmctld`"

SILENT = frozenset({"DOWN", "NOT_RESPONDING"})


class PauseError(Exception):
    """The worker cannot be resumed; the text says what to do."""


@dataclass(frozen=True)
class Before:
    """The state before the pause: when slurmd started, whether slurmctld reached it, and the jobs that must survive.

    `logged` is the size of slurmctld's log, `unwell` the reason with which its health check had drained the worker.
    """

    slurmd: str = ""
    silent: bool = False
    jobs: tuple[Job, ...] = ()
    logged: int = 0
    at: float = field(default_factory=time.time)
    unwell: str = ""


def paused(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the nodes that an earlier run has paused and not resumed."""
    return reasons.drained(nodes, nodes, reasons.UPGRADE)


def _can_open(shown: Mapping[str, str]) -> bool:
    """Say whether a worker accepts jobs, or will when its health check resumes it."""
    return not reasons.is_left_alone(shown) or reasons.unwell(shown)


class Worker:
    """A machine of the cluster. If it is not a worker, only slurmctld and all of its jobs are checked."""

    def __init__(self, name: str, slurm: Slurm) -> None:
        self.name = name
        self.slurm = slurm

    def pause(self, check_mode: bool) -> tuple[bool, Before]:
        """Drain it; return whether it accepted jobs until now or could soon, and its previous state.

        Raises PauseError.
        """
        log, state = self.slurm.log(), self.slurm.state()
        # Asked last, so that an administrator's drain in the meantime is seen.
        shown = self._nodes().get(self.name)
        jobs = self._jobs(state, shown is not None)
        if shown is None:
            return False, Before(jobs=jobs, logged=log.size)
        before = Before(
            shown.get("SlurmdStartTime", ""),
            bool(SILENT & flags(shown)),
            jobs,
            log.size,
            unwell=shown["Reason"] if reasons.unwell(shown) else "",
        )
        open_so_far = _can_open(shown)
        if open_so_far and not check_mode:
            self.slurm.update(self.name, "DRAIN", reasons.UPGRADE)
            if _can_open(self._nodes().get(self.name, shown)):
                raise PauseError("slurmctld did not drain it; see its log, then repeat the command")
        return open_so_far, before

    def give_back(self, before: Before, restarted: bool) -> bool:
        """Resume it, or leave it to its health check as before, if a pause drained it; return whether that was so.

        :param restarted: whether slurmd has been restarted since, so that it must register
        :raises PauseError: slurmctld or slurmd does not work as before, or a job was lost
        """
        if missing := wait_while(lambda: self._missing(before, restarted), SETTLE, PAUSE):
            raise PauseError(missing)
        self._account_for(before)
        nodes = self._nodes()
        if self.name not in paused(nodes):
            return False
        if before.unwell:
            # Its health check resumes it.
            self.slurm.update(self.name, "DRAIN", before.unwell)
            return True
        return not self.slurm.resume({self.name: nodes[self.name]})

    def _nodes(self) -> Mapping[str, Mapping[str, str]]:
        nodes = self.slurm.nodes()
        if not nodes:
            # On a timeout every worker would look unknown to Slurm.
            raise PauseError(DEAF)
        return nodes

    def _jobs(self, state: State, worker: bool) -> tuple[Job, ...]:
        return state.on(self.name) if worker else state.live

    def _missing(self, before: Before, restarted: bool) -> str:
        """Return what still prevents resuming the worker; empty if nothing does."""
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
        """Check the jobs that ran before. Raises PauseError."""
        state = self.slurm.state()
        if not state.heard:
            return
        # slurmctld shows an ended job at least for this number of seconds.
        shown = float(self.slurm.setting("MinJobAge").partition(" ")[0] or 0)
        recent = time.time() - before.at < shown
        log = self.slurm.log(before.logged)
        lost = slurm_jobs.lost(before.jobs, slurm_jobs.by_number(state), recent, log.since_mark)
        if lost:
            words = ", ".join(f"job {job.number} was {what}" for job, what in lost)
            raise PauseError(f"{words}; see slurmctld's log")
