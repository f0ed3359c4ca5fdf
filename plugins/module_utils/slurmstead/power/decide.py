# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What to do with a machine: compares what slurmctld believes with what device and network say. Pure functions.

Nothing waits here. What was done and seen is in the memory, and the next look, seconds later, goes on from there, also
after a power cut.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping

from ansible.module_utils.slurmstead.power.node import Node

QUIET = 15.0
"""Seconds of silence after which a machine that was told to shut down has done so."""
SHUTDOWN = 300.0
"""Seconds that a system may take to shut down; then its supply is cut."""
RETRY = 60.0
"""Seconds until a machine that stays silent is switched on again; doubled each time."""
SURE = 60.0
"""Seconds for which a machine must be off before slurmctld, which believes it on, or runs a job on it, is told."""
PAUSE = 300.0
"""Seconds until a machine that did not wake may be tried again; doubled each time."""
AGAIN = 86400.0
"""Seconds after which a machine that could not be told to shut down may be sent to sleep again."""
ATTEMPTS = 3
"""How often a machine may fail to wake before a person has to look."""


STUCK = frozenset({"COMPLETING", "POWERED_DOWN"})
"""slurmctld waits for ever for a job to end on such a node, and starts no others there.

slurmctld does not save at once that a job has ended, and never that a node has become POWERED_DOWN (power_save.c). So
one that was killed can start with a node that is POWERING_DOWN and a job that is ending there, while the machine is
off. If the node was drained and then resumed, it is also NOT_RESPONDING (node_mgr.c: _require_node_reg).
"""


class Act(enum.Enum):
    """What can be done."""

    ON = "switch on"
    SHUT_DOWN = "shut down"
    CUT = "cut the supply"
    SLEEP = "let Slurm power it down"
    BELIEVE = "tell Slurm that it is off"
    RECALL = "tell Slurm, which had lost it, that it is off"
    RESUME = "let Slurm wake it again"
    WAKE = "let Slurm wake it for its job"
    REMIND = "tell Slurm that it has not booted"
    GIVE_UP = "leave it to a person"


@dataclasses.dataclass(frozen=True)
class Seen:
    """A machine now. `now` is in seconds since 1970."""

    node: Node
    now: float
    answers: bool
    """whether its system answers on the network"""
    supply: bool | None = None
    """what its device says; None if it cannot tell"""
    cuts: bool = True
    """whether the device can cut the supply"""
    operation: bool = False
    """whether a run of a playbook is under way, which may need the machine"""
    silent_device: bool = False
    """the device does not answer, or refuses the password: nothing is known, and nothing is switched"""

    @property
    def off(self) -> bool:
        """Whether it is off for certain, or as far as anybody can tell."""
        return not self.answers and not self.supply and not self.silent_device


@dataclasses.dataclass(frozen=True)
class Memory:
    """What is remembered of a machine. Times are seconds since 1970; 0 is never."""

    asleep: bool = False
    """it was seen off while slurmctld had powered it down"""
    told: float = 0.0
    """when its system was told to shut down"""
    silent: float = 0.0
    """since when it has not answered"""
    tried: float = 0.0
    """when it was last switched on"""
    attempts: int = 0
    """how often since slurmctld has waited for it"""
    undrained: bool = False
    """slurmctld waits for it, and it was seen without a drain since"""
    appeared: float = 0.0
    """since when it has been on, and was not told to shut down, although slurmctld has powered it down"""
    missed: float = 0.0
    """since when slurmctld has counted on it for a job, although it has powered it down"""
    unable: float = 0.0
    """when it could last not be told to shut down"""
    failed_at: float = 0.0
    """the last failure that was counted"""
    failures: int = 0
    """how often in a row it did not wake"""


TIMES = ("told", "silent", "tried", "appeared", "missed", "unable")
"""Fields of a memory that this machine's clock has set. If it was set back since, they may be in the future."""

Decision = tuple["Act | None", str, Memory]
"""What to do, why, and what to remember."""


def decide(seen: Seen, memory: Memory, resume_timeout: float) -> Decision:
    """Return what to do with a machine. Who sleeps is decided by `sleepers`, because it depends on the others."""
    memory = dataclasses.replace(memory, **{name: min(getattr(memory, name), seen.now) for name in TIMES})
    booted = seen.answers and memory.silent > 0 and seen.now - memory.silent >= QUIET
    silent = 0.0 if seen.answers else memory.silent or seen.now
    undrained = seen.node.waking and (memory.undrained or "DRAIN" not in seen.node.flags)
    memory = dataclasses.replace(memory, silent=silent, undrained=undrained)
    if seen.node.unlimited:
        return Act.REMIND, "slurmctld had lost that, and would wait for ever", memory
    if seen.silent_device:
        return None, "", memory
    if seen.node.wanted and not seen.node.waking and seen.answers:
        # It registered after a boot of its own. A silent one has halted, and slurmctld lost what it knew.
        memory = dataclasses.replace(memory, told=0.0, asleep=False)
    if memory.told and booted:
        # Its device says on although it was off: a person has started it.
        memory = dataclasses.replace(memory, told=0.0, appeared=seen.now)
    if memory.told and (not seen.off or (seen.cuts and seen.supply is None)):
        # Also if a job arrived meanwhile: half a shutdown cannot be undone, and it will be switched on after it.
        return _finish(seen, memory)
    if memory.told:
        memory = dataclasses.replace(memory, told=0.0)
    if memory.asleep and not seen.off:
        # It was switched on by its button, say, and boots: that counts as an attempt, so no edge of its supply cuts it.
        memory = dataclasses.replace(memory, tried=seen.now, attempts=1)
    # Drained while it woke for a job, it is a person's turn; drained before, a person has woken it.
    if seen.node.decided or (memory.undrained and "DRAIN" in seen.node.flags):
        return None, "", dataclasses.replace(memory, asleep=memory.asleep or (seen.off and not seen.node.wanted))
    if seen.node.waking:
        return _wake(seen, memory)
    if seen.node.wanted:
        return _awake(seen, memory)
    return _asleep(seen, memory, resume_timeout)


def _finish(seen: Seen, memory: Memory) -> Decision:
    # Where the device cannot tell, says on whatever is done, or must not delay a job, cutting has to suffice.
    last = seen.supply is None or seen.node.waking or seen.now - memory.told >= 2 * SHUTDOWN
    after = dataclasses.replace(memory, told=0.0) if last else memory
    if memory.silent and seen.now - memory.silent >= QUIET:
        return Act.CUT, "its system has shut down", after
    if seen.now - memory.told >= SHUTDOWN:
        # If something still answers then, it is told again.
        return Act.CUT, f"its system did not shut down within {SHUTDOWN:.0f} s", dataclasses.replace(memory, told=0.0)
    return None, "", memory


def _wake(seen: Seen, memory: Memory) -> Decision:
    memory = dataclasses.replace(memory, asleep=False, appeared=0.0, missed=0.0)
    due = memory.tried + RETRY * 2 ** max(0, memory.attempts - 1)
    # A device can say on for a system that shut itself down: the first silence counts as its boot.
    first = not memory.attempts and (seen.off or seen.now - memory.silent >= RETRY)
    if seen.answers or not (first or (memory.attempts and seen.now >= due)):
        return None, "", memory
    why = "Slurm waits for it" if not memory.attempts else f"it is silent after {memory.attempts} attempts"
    return Act.ON, why, dataclasses.replace(memory, tried=seen.now, attempts=memory.attempts + 1)


def _awake(seen: Seen, memory: Memory) -> Decision:
    kept = Memory(silent=memory.silent, unable=memory.unable)
    if not seen.off or seen.now - memory.silent < SURE:
        return None, "", kept
    # Wake-on-LAN cannot tell a machine that is off from one whose network is gone; slurmctld says when it is silent.
    if seen.supply is None and not seen.node.flags & {"NOT_RESPONDING", "DOWN"}:
        return None, "", kept
    if seen.node.has_jobs:
        if seen.now - memory.tried < SHUTDOWN:
            return None, "", dataclasses.replace(kept, tried=memory.tried)
        return Act.ON, "it went off under a job", dataclasses.replace(kept, tried=seen.now)
    # A node that is down would stay so while it is powered down, and get no jobs.
    lost = seen.node.forgotten or "DOWN" in seen.node.flags
    return Act.RECALL if lost else Act.BELIEVE, "it is off, and Slurm believed it on", kept


def _asleep(seen: Seen, memory: Memory, resume_timeout: float) -> Decision:
    node = seen.node
    if node.failed_at and node.failed_at != memory.failed_at:
        # One that is on may boot slowly: it has the same time again to register.
        appeared = 0.0 if seen.off else seen.now
        memory = dataclasses.replace(memory, failed_at=node.failed_at, failures=memory.failures + 1, appeared=appeared)
    missed = (memory.missed or seen.now) if node.runs_jobs and "POWERED_DOWN" in node.flags else 0.0
    memory = dataclasses.replace(memory, missed=missed)
    if node.runs_jobs:
        # Slurm wakes it in a second, or slurmctld has restarted without its last minutes, and waits for ever.
        silent = seen.off or (not seen.answers and seen.now - memory.silent >= resume_timeout)
        memory = dataclasses.replace(memory, asleep=memory.asleep and seen.off)
        lost = silent and missed and seen.now - missed >= SURE
        return Act.WAKE if lost else None, "Slurm has powered it down under a job", memory
    if seen.off:
        memory = dataclasses.replace(memory, asleep=True, appeared=0.0, attempts=0, tried=0.0, unable=0.0)
        if node.forgotten or node.given_up:
            return Act.RESUME, "slurmctld had lost its state" if node.forgotten else "slurmctld had given it up", memory
        if node.flags >= STUCK:
            return Act.RECALL, "it is off, and a job cannot end on it", memory
        if not node.failed_at:
            return None, "", memory
        if memory.failures >= ATTEMPTS:
            return (
                Act.GIVE_UP,
                f"it did not wake {memory.failures} times in a row",
                dataclasses.replace(memory, failures=0),
            )
        # slurmctld's time of the failure is in the future if this machine's clock was set back since.
        if node.failed_at > seen.now or seen.now - node.failed_at >= PAUSE * 2 ** (memory.failures - 1):
            return Act.RESUME, f"it did not wake, attempt {memory.failures} of {ATTEMPTS}", memory
        return None, "", memory
    if memory.asleep or not (seen.answers or memory.appeared):
        # Its button, a person, or a boot for which slurmctld did not wait: it has the time of a boot to register, which
        # makes it awake for slurmctld.
        memory = dataclasses.replace(memory, asleep=False, appeared=seen.now)
    if seen.operation or node.has_jobs or (memory.appeared and seen.now - memory.appeared < resume_timeout):
        return None, "", memory
    if not seen.answers:
        why = f"it has been on for {resume_timeout:.0f} s without an answer, and Slurm has powered it down"
        return Act.CUT, why, dataclasses.replace(memory, appeared=0.0)
    why = "Slurm has powered it down" if not memory.appeared else "it is on, but Slurm has powered it down"
    return Act.SHUT_DOWN, why, dataclasses.replace(memory, told=seen.now, appeared=0.0)


@dataclasses.dataclass(frozen=True)
class Idler:
    """A machine that could sleep."""

    name: str
    idle: float
    """seconds"""
    allowed: float
    """seconds after which it sleeps; 0 is never"""
    watts: float = 0.0


def sleepers(idlers: Iterable[Idler], keep: int) -> list[str]:
    """Return who sleeps now, the most expensive first; `keep` idle machines stay awake.

    >>> sleepers([Idler("a", 900, 600, 90), Idler("b", 900, 600, 200), Idler("c", 10, 600)], keep=2)
    ['b']
    """
    waiting = sorted(idlers, key=lambda one: (-one.watts, one.name))
    due = [one.name for one in waiting if 0 < one.allowed <= one.idle]
    return due[: max(0, len(waiting) - keep)]


def remembered(values: Mapping[str, object]) -> Memory:
    """Return a memory from its JSON; what it does not know is as at first."""
    known = {field.name for field in dataclasses.fields(Memory)}
    return Memory(**{name: value for name, value in values.items() if name in known})  # type: ignore[arg-type]
