# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What slurmctld says of a machine, as far as its supply depends on it.

Measured on 22.05.8 and 24.11.5: a request to power down is POWER_DOWN for up to two seconds, POWERING_DOWN for exactly
SuspendTimeout, then POWERED_DOWN. A job makes that POWERING_UP until slurmd registers after a boot, or until
ResumeTimeout; then it is DOWN+POWERED_DOWN with a reason by slurm, and `state=resume` makes it POWERED_DOWN again.
24.11 forgets DRAIN when a drained node is powered down, so this never is.

A slurmctld that restarts, or in 24.11 is reconfigured, keeps POWERING_UP but loses NOT_RESPONDING (node_mgr.c:
load_all_node_state). Without that it never applies ResumeTimeout (power_save.c), and it does not ping such a node.

A request to power up that slurmctld had not started when slurmd registered stays as POWER_UP until the node has been
powered down and up once more. So it is a request only on a node that is POWERED_DOWN, as it is when it is made.

A slurmctld without its node_state shows each node as UNKNOWN until it registers. It never starts a request to power
such a node down; DOWN and then IDLE, it does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ansible.module_utils.slurmstead.slurm.answers import flags, seconds
from ansible.module_utils.slurmstead.workers.reasons import FORGOTTEN, OPERATIONS, did_not_wake, is_put_down

FALLING = frozenset({"POWERED_DOWN", "POWERING_DOWN"})
RISING = frozenset({"POWERING_UP"})
REQUESTS = frozenset({"POWER_DOWN", "POWER_UP"})
LEFT_ALONE = REQUESTS | {"DRAIN", "FAIL", "MAINT", "REBOOT_ISSUED", "REBOOT_REQUESTED", "FUTURE"}
"""A person's decision, or a request that slurmctld has not started yet."""
SWITCH_OFF = frozenset(OPERATIONS[name] for name in ("move-share", "remove-node", "replace-node", "shutdown"))
"""Reasons of drains by commands after which a machine may be off."""
RUNNING = frozenset({"ALLOCATED", "MIXED"})


@dataclasses.dataclass(frozen=True)
class Node:
    """A node. Times are seconds since 1970."""

    flags: frozenset[str]
    idle_since: float = 0.0
    """0 is unknown"""
    failed_at: float = 0.0
    """when slurmctld gave up waking it; 0 if it did not"""
    forgotten: bool = False
    """whether slurmctld has lost its state, or this was being put right"""
    put_down: bool = False
    """whether a person put it down"""
    given_up: bool = False
    """whether slurmctld put it down, for another cause than a failure to wake"""
    switched_off: bool = False
    """whether a command drained it, and may have switched it off"""

    @classmethod
    def read(cls, shown: Mapping[str, str]) -> Node:
        """Return the node of its fields as `answers.read_nodes` returns them.

        >>> fan = Node.read({"State": "DOWN+POWERED_DOWN", "Reason": "fan", "ReasonSetByUser": "root"})
        >>> fan.wanted, fan.decided
        (False, True)
        """
        busy, started = (seconds(shown.get(key, "")) for key in ("LastBusyTime", "SlurmdStartTime"))
        known = flags(shown)
        if "POWERED_DOWN" not in known:
            known -= {"POWER_UP"}
        forgotten = "UNKNOWN" in known or ("DOWN" in known and shown.get("Reason", "").startswith(FORGOTTEN))
        failed_at = seconds(shown["ReasonChangedAt"]) if did_not_wake(shown) else 0.0
        given_up = "DOWN" in known and shown.get("ReasonSetByUser") == "slurm" and not failed_at
        switched_off = "DRAIN" in known and shown.get("Reason") in SWITCH_OFF
        return cls(known, max(busy, started), failed_at, forgotten, is_put_down(shown), given_up, switched_off)

    @property
    def wanted(self) -> bool:
        """Whether slurmctld counts on it being on, now or soon."""
        return not self.flags & FALLING

    @property
    def waking(self) -> bool:
        """Whether slurmctld waits for it."""
        return bool(self.flags & RISING)

    @property
    def decided(self) -> bool:
        """Whether it is another's turn. A node out of service that Slurm wakes was woken by a person."""
        woken = self.waking and not self.switched_off
        ignored = ({"DRAIN"} if woken else set()) | (REQUESTS if self.forgotten else set())
        return bool(self.flags & (LEFT_ALONE - ignored)) or (self.put_down and not self.waking)

    @property
    def unlimited(self) -> bool:
        """Whether slurmctld waits for it, and would do so for ever."""
        return self.waking and not self.decided and "NOT_RESPONDING" not in self.flags

    @property
    def has_jobs(self) -> bool:
        """Whether jobs run, or end, on it."""
        return self.runs_jobs or "COMPLETING" in self.flags

    @property
    def runs_jobs(self) -> bool:
        """Whether jobs run on it, or wait for it to wake."""
        return bool(self.flags & RUNNING)

    @property
    def idle(self) -> bool:
        """Whether it is on and could sleep."""
        return self.flags == {"IDLE"}
