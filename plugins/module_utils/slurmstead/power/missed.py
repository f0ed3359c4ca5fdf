# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Machines that sleep during a command: they are woken for it, or get no job until it has been done on them.

Such a machine is drained, so no job wakes it, and the reason of the drain names what is missing. What is missing is
also in a file, because the reason may become that of an administrator. Both survive an interrupted command and a power
cut; see workers/drains.py for what slurmctld forgets.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.power.node import FALLING, RISING
from ansible.module_utils.slurmstead.power.shutdown import answers_at
from ansible.module_utils.slurmstead.reach import durable
from ansible.module_utils.slurmstead.reach.deadline import wait_while
from ansible.module_utils.slurmstead.slurm.answers import flags
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.workers.reasons import is_drained, is_left_alone, missed, missing
from ansible.module_utils.slurmstead.workers.service import REGISTER

COVERS = {"up": ("up", "rotate-key"), "upgrade": ("upgrade",)}
"""What a command makes good, in the order in which to run them. Every `up` installs the current MUNGE key."""

FILE = pathlib.Path("/var/lib/slurmstead/power/missed.json")

FALLS = frozenset({"POWERING_DOWN"})
PAUSE = 2.0

Fields = Mapping[str, str]
Answers = Callable[[str], bool]
"""Whether a machine with this address answers."""


def recorded() -> dict[str, list[str]]:
    """Return the commands that machines missed, by name of the machine."""
    found: dict[str, list[str]] = {}
    # Without the file, or if it is broken, the reasons in Slurm remain.
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(FILE.read_text())
    return found


@dataclass(frozen=True)
class Found:
    """What became of the machines that slept: `said` describes it, one line each."""

    woken: tuple[str, ...] = ()
    asleep: tuple[str, ...] = ()
    noted: bool = False
    """whether those asleep get no jobs until it is done there"""
    changed: bool = False
    said: tuple[str, ...] = ()
    missed: Mapping[str, list[str]] = field(default_factory=dict)
    """what these machines still miss"""


class Sleepers:
    """Those of some workers that sleep, and the command that needs them."""

    def __init__(self, names: Iterable[str], operation: str, slurm: Slurm, answers: Answers = answers_at) -> None:
        self.names = sorted(names)
        self.operation = operation
        self.slurm = slurm
        self.answers = answers

    def _with(self, states: frozenset[str]) -> dict[str, Fields]:
        nodes = self.slurm.nodes()
        return {name: nodes[name] for name in self.names if name in nodes and flags(nodes[name]) & states}

    def begin(self, wake: bool, deadline: float, check_mode: bool) -> Found:
        """Wake the machines that sleep, or note what they miss; wait for those that Slurm wakes anyway.

        :param deadline: seconds for a machine to boot
        """
        sleeping = self._with(FALLING)
        # Slurm would wait for another boot of a machine that is on already, for example by its button.
        dark = {*self._silent(sleeping), *(name for name in sleeping if FALLS & flags(sleeping[name]))}
        if check_mode:
            return Found(asleep=tuple(sorted(dark)))
        # At once: a job that comes now must not be given to them. One that is on may be shutting down.
        noted = self._note({name: shown for name, shown in sleeping.items() if not wake or name not in dark})
        # If one that an administrator took out of service did not wake, Slurm would drop that decision.
        wanted = {name for name in dark if wake and self._is_free(sleeping[name])}
        # Slurm ignores a request to wake what has not gone down completely.
        falling = wait_while(lambda: self._with(FALLS).keys() & wanted, deadline, PAUSE)
        wanted -= falling
        self.slurm.wake(sorted(wanted))
        waking = {**self._with(RISING), **{name: sleeping[name] for name in wanted}}
        silent = wait_while(lambda: self._silent(waking), deadline, PAUSE)
        if waking.keys() - set(silent):
            wait_while(lambda: self._with(RISING).keys() & waking.keys() - set(silent), REGISTER, PAUSE)
        nodes = self.slurm.nodes()
        noted = self._note({name: nodes[name] for name in (*silent, *falling) if name in nodes}) or noted
        woken = sorted(waking.keys() - set(silent))
        asleep = sorted({*(dark - wanted), *silent} - set(woken))
        said = [f"{compress(woken)} woken"] if woken else []
        if asleep:
            verb = "did not wake" if wanted & set(asleep) else "sleeps"
            said.append(f"{compress(asleep)} {verb}; it gets no jobs until it is done")
        changed = noted or bool(dark & set(woken))
        return Found(tuple(woken), tuple(asleep), bool(asleep), changed, tuple(said))

    def _silent(self, chosen: Mapping[str, Fields]) -> list[str]:
        with ThreadPoolExecutor(16) as pool:
            answered = pool.map(self.answers, [shown["NodeAddr"] for shown in chosen.values()])
            return [name for name, answer in zip(chosen, answered, strict=True) if not answer]

    @staticmethod
    def _is_free(shown: Fields) -> bool:
        return bool(missed(shown)) or not is_left_alone(shown)

    def _note(self, sleeping: Mapping[str, Fields]) -> bool:
        """Drain machines, unless an administrator took them out of service; return whether anything changed."""
        record, changed = recorded(), False
        for name, shown in sleeping.items():
            before = _all(record, name, shown)
            if not self._is_free(shown):
                continue
            if self.operation not in before or not is_drained(shown):
                record[name] = list(dict.fromkeys([*before, self.operation]))
                # Before the drain: what an interrupted command has drained must be found again.
                _keep(record)
                self.slurm.update(name, "DRAIN", missing(record[name]))
                changed = True
        return changed

    def done(self, check_mode: bool) -> Found:
        """Let the machines take jobs, if nothing else is missing; they are up to date now."""
        said, record, nodes = [], recorded(), self.slurm.nodes()
        for name, shown in nodes.items():
            before = _all(record, name, shown) if name in self.names else []
            left = [one for one in before if one not in COVERS.get(self.operation, (self.operation,))]
            if len(left) == len(before):
                continue
            said.append(f"{name} still misses {', '.join(left)}" if left else f"{name} gets jobs again")
            if check_mode:
                continue
            if missed(shown):
                if left:
                    self.slurm.update(name, "DRAIN", missing(left))
                else:
                    self.slurm.resume({name: shown})
            record[name] = left
        if said and not check_mode:
            # A machine that left the cluster misses nothing.
            _keep({name: what for name, what in record.items() if what and name in nodes})
        return Found(changed=bool(said), said=tuple(said))

    def show(self) -> Found:
        """Return what the machines miss."""
        record, nodes = recorded(), self.slurm.nodes()
        found = {name: _all(record, name, nodes[name]) for name in self.names if name in nodes}
        return Found(missed={name: what for name, what in found.items() if what})


def _all(record: Mapping[str, list[str]], name: str, shown: Fields) -> list[str]:
    return list(dict.fromkeys([*record.get(name, []), *missed(shown)]))


def _keep(record: Mapping[str, list[str]]) -> None:
    FILE.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.write(FILE, json.dumps(record).encode(), 0o600)
