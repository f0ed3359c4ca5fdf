# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The reboot of a worker through Slurm: its jobs end first, and a drained worker is drained again afterwards.

Slurm itself stores the request. A second call while the node waits for its jobs only waits, too.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm.answers import flags, seconds
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.workers.reasons import (
    HEALTH,
    REBOOT,
    REBOOT_ISSUED,
    REBOOT_MARK,
    author_before_reboot,
    before_reboot,
    is_drained,
    is_temporary,
)

MOVED = 10
"""Minimum change of the boot time after a reboot in seconds; without a reboot it can vary by a second."""

RESUME_TIMEOUT = 600
"""Default timeout in seconds after which slurmctld gives up on a rebooting node."""

SETTLE = 180
"""Timeout in seconds until a rebooted node must be ready for jobs: its health check waits for share and clock."""

PAUSE = 2.0

SLEEPS = frozenset({"POWERED_DOWN", "POWERING_DOWN"})
"""States of a node in power saving."""

Fields = Mapping[str, str]
"""The fields of a node as Slurm.nodes() returns them."""


class RebootError(Exception):
    """The node was not rebooted, or did not come back; the text says what to do."""


class Phase(enum.Enum):
    """The phases of a reboot."""

    WAITS = "waits for its jobs"
    REBOOTS = "reboots"
    DOWN = "did not come back"
    UNFIT = "is back, but accepts no jobs"
    BACK = "is back"
    WITHDRAWN = "was not rebooted"


@dataclass(frozen=True)
class Before:
    """The state of a node before its reboot: its boot time, and reason and author of its drain, if any.

    `requested` is the reason of the node if an administrator has requested the reboot; that request is not withdrawn.
    """

    boot: float
    drained: str | None = None
    author: str = ""
    requested: str = ""


def phase(before: Before, shown: Fields) -> Phase:
    """Return the phase of a node's reboot, from slurmctld's fields."""
    states = flags(shown)
    rebooting = {state for state in states if state.startswith("REBOOT")}
    if rebooting:
        return Phase.REBOOTS if "REBOOT_ISSUED" in rebooting else Phase.WAITS
    if abs(seconds(shown.get("BootTime", "")) - before.boot) < MOVED:
        return Phase.DOWN if "DOWN" in states else Phase.WITHDRAWN
    unfit = {"DOWN", "NOT_RESPONDING"} & states or ("DRAIN" in states and before.drained is None)
    return Phase.UNFIT if unfit else Phase.BACK


def noted(before: Before, shown: Fields) -> Before:
    """Return the state to restore, with the drain of an administrator who drained the node meanwhile.

    While it reboots, its reason can only be one with which it was drained before, or an administrator's.
    """
    drained = before_reboot(shown)
    if before.requested and drained == before.requested:
        drained = None
    under_way = phase(before, shown)
    if under_way is Phase.WAITS or (under_way is Phase.REBOOTS and drained not in (None, "", REBOOT_ISSUED)):
        author = author_before_reboot(shown) or (before.author if drained == before.drained else "")
        return Before(before.boot, drained, author, before.requested)
    return before


def set_again(before: Before) -> str:
    """Return the reason with which root drains a node again. It must not make Slurm's drain an administrator's.

    >>> [set_again(Before(0, "Low CPUs", author)).startswith(HEALTH) for author in ("slurm", "ann")]
    [True, False]
    """
    reason = before.drained or ""
    is_kept = is_temporary(reason, "root") or not is_temporary(reason, before.author)
    return reason if is_kept else HEALTH + reason


def found(shown: Fields) -> Before:
    """Return the state of a node, whose reboot may be under way.

    slurmctld shows NextState during a reboot after which it removes the drain itself.

    >>> asap = {"State": "IDLE+DRAIN+REBOOT_REQUESTED", "NextState": "RESUME", "Reason": "Reboot ASAP"}
    >>> found(asap).drained, found(asap).requested
    (None, 'Reboot ASAP')
    """
    before = Before(seconds(shown.get("BootTime", "")), before_reboot(shown), author_before_reboot(shown))
    under_way = any(state.startswith("REBOOT") for state in flags(shown))
    is_ours = shown["Reason"].startswith(REBOOT)
    if not under_way or is_ours or (is_drained(shown) and "NextState" not in shown):
        return before
    return Before(before.boot, requested=shown["Reason"].partition(REBOOT_MARK)[0])


def sleeps(shown: Fields) -> bool:
    """Say whether a node sleeps: it boots when it wakes, so there is nothing to reboot.

    >>> sleeps({"State": "IDLE+POWERED_DOWN"}), sleeps({"State": "IDLE+POWERING_DOWN+REBOOT_ISSUED"})
    (True, False)
    """
    states = flags(shown)
    return bool(states & SLEEPS) and not any(state.startswith("REBOOT") for state in states)


class Reboot:
    """The reboot of one node."""

    def __init__(self, node: str, slurm: Slurm) -> None:
        self.node = node
        self.slurm = slurm
        self.holder = cluster_lock.holder()

    def _shown(self) -> Fields:
        """Return slurmctld's fields of the node. Raises RebootError."""
        nodes = self.slurm.nodes()
        if self.node not in nodes:
            why = (
                f"has no node {self.node}; run `stead up`"
                if nodes
                else "does not answer; see `systemctl status slurmctld`"
            )
            raise RebootError(f"{self.node}: slurmctld {why}")
        return nodes[self.node]

    def ask(self, check_mode: bool) -> tuple[bool, Before, str]:
        """Request the reboot. Return whether the request was new, the previous state, and a message."""
        shown = self._shown()
        before = found(shown)
        if sleeps(shown):
            return False, before, f"{self.node} sleeps; it boots when it wakes"
        under_way = phase(before, shown) in (Phase.WAITS, Phase.REBOOTS)
        if not under_way:
            if {"DOWN", "NOT_RESPONDING"} & flags(shown):
                raise RebootError(f"{self.node} is {shown['State']}, so Slurm cannot reboot it; power-cycle or fix it")
            why = "" if check_mode else self.slurm.reboot(self.node, "" if before.drained is not None else REBOOT)
            if why:
                raise RebootError(f"{self.node}: {why}")
        jobs = self.slurm.state().on(self.node)
        words = f"waits for {slurm_jobs.in_words(jobs)}" if jobs else "reboots"
        if check_mode:
            words = f"would reboot{f' after {slurm_jobs.in_words(jobs)}' if jobs else ''}"
        return not under_way, before, f"{self.node} {words}"

    def wait(self, before: Before, deadline: float) -> str:
        """Wait until the node is back; return a message about it. `deadline`: timeout for its jobs in seconds.

        Raises RebootError.
        """
        started = time.monotonic()
        limits = {Phase.WAITS: deadline, Phase.REBOOTS: self._boot_seconds(), Phase.UNFIT: SETTLE}
        seen, since = Phase.WAITS, started
        while True:
            if other := cluster_lock.successor(self.holder):
                # The new lock holder may wait for the same reboot.
                raise RebootError(f"{self.node}: {other} has taken over the cluster lock")
            shown = self.slurm.nodes().get(self.node)
            if shown is not None and sleeps(shown):
                return ""
            if shown is not None:
                before = noted(before, shown)
                now = phase(before, shown)
                if now is not seen:
                    seen, since = now, time.monotonic()
            if seen is Phase.BACK:
                return self._finish(before, time.monotonic() - started)
            if time.monotonic() - since > limits.get(seen, 0):
                self._give_up(before, seen, limits.get(seen, 0))
            time.sleep(PAUSE)

    def _boot_seconds(self) -> float:
        words = self.slurm.setting("ResumeTimeout").split()
        # slurmctld checks about once a minute.
        return 120.0 + (int(words[0]) if words and words[0].isdigit() else RESUME_TIMEOUT)

    def _finish(self, before: Before, taken: float) -> str:
        """Return the message for a node that is back; drain it again with the old reason if it was drained.

        A drain that the health check or `up` takes back is left to them: set again, it would look like an
        administrator's.
        """
        said = f"{self.node} is back after {taken:.0f} s"
        if before.drained is None:
            return said
        shown, reason = self._shown(), before.drained
        if is_temporary(reason, before.author):
            if not is_drained(shown):
                return said
            if shown["Reason"] == REBOOT_ISSUED:
                self.slurm.update(self.node, "DRAIN", set_again(before))
        elif not is_drained(shown) or shown["Reason"] != reason:
            self.slurm.update(self.node, "DRAIN", reason)
        return f"{said}, drained as before: {reason}"

    def _give_up(self, before: Before, seen: Phase, limit: float) -> None:
        """Raise RebootError for a node that has been in a phase for too long."""
        if seen is Phase.WAITS:
            jobs = slurm_jobs.in_words(self.slurm.state().on(self.node)) or "Slurm"
            if before.requested:
                raise RebootError(
                    f"{self.node} was not rebooted: {jobs} did not end within {limit / 60:.0f} min. An administrator "
                    f"has requested the reboot, so Slurm still waits; `scontrol cancel_reboot {self.node}` withdraws it"
                )
            # To withdraw the reboot also resumes the node.
            before = noted(before, self.slurm.nodes().get(self.node, {"State": "", "Reason": ""}))
            self.slurm.cancel_reboot(self.node)
            if before.drained is not None:
                self.slurm.update(self.node, "DRAIN", set_again(before))
            raise RebootError(
                f"{self.node} was not rebooted and goes on as before: {jobs} did not end within {limit / 60:.0f} min. "
                "Wait longer with --deadline, or cancel the job"
            )
        shown = self.slurm.nodes().get(self.node, {})
        reason = f" ({shown['State']}: {shown['Reason'] or 'no reason'})" if shown else ""
        hints = {
            Phase.WITHDRAWN: "it was withdrawn (scontrol cancel_reboot), or RebootProgram failed (slurmd.log)",
            Phase.UNFIT: "see `sinfo -R`, and `journalctl -u slurmd` there",
        }
        hint = hints.get(seen, "check its console; once it is back, it accepts jobs without further action")
        raise RebootError(f"{self.node} {seen.value}{reason}: {hint}")
