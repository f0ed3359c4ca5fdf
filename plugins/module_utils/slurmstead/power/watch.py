# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""One look at all machines that may sleep: asks slurmctld, network and devices, and does what `decide` says.

Slurm's own timer cannot choose: 22.05 also powers down drained nodes. So SuspendTime is for ever, this program asks
for each sleep, and SuspendProgram and ResumeProgram only make it look at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import itertools
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ansible.module_utils.slurmstead.power import decide, journal, shutdown
from ansible.module_utils.slurmstead.power.decide import Act, Memory, Seen
from ansible.module_utils.slurmstead.power.methods import method
from ansible.module_utils.slurmstead.power.model import Machine, PowerError, RefusedError
from ansible.module_utils.slurmstead.power.node import Node
from ansible.module_utils.slurmstead.reach import cluster_lock, durable
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.answers import read_nodes
from ansible.module_utils.slurmstead.workers import drains
from ansible.module_utils.slurmstead.workers.reasons import DOES_NOT_WAKE, FORGOTTEN

CONFIGURATION = pathlib.Path("/etc/slurmstead/power.json")
STATE = pathlib.Path("/var/lib/slurmstead/power")
LOG = pathlib.Path("/var/log/slurmstead/power.log")
MEMORY = "memory.json"

TOGETHER = 64
"""Devices that are asked at once: a silent one takes up to 12 seconds, and a look at all has 300 (service.j2)."""

ASK = "ask whether it is on"
LOOK = "look at it"
UPDATES = {
    Act.SLEEP: (("state=power_down",),),
    Act.BELIEVE: (("state=power_down_force",),),
    Act.RECALL: (("state=down", f"reason={FORGOTTEN}"), ("state=resume",), ("state=power_down_force",)),
    Act.RESUME: (("state=resume",),),
    Act.REMIND: (("state=noresp",),),
    Act.WAKE: (("state=power_up",),),
}
"""What scontrol is told for an act (scontrol(1), 21.08 to 24.11)."""


T = TypeVar("T")


class BusyError(Exception):
    """Another process looks at the machines."""


@dataclasses.dataclass(frozen=True)
class Sleeper:
    """A machine that may sleep: after `idle` seconds without a job, 0 for never."""

    machine: Machine
    idle: float = 0.0
    watts: float = 0.0


@dataclasses.dataclass(frozen=True)
class Configuration:
    """What the role writes."""

    sleepers: tuple[Sleeper, ...]
    keep: int = 0
    """idle machines that stay awake"""
    resume_timeout: float = 600.0

    @classmethod
    def read(cls, text: str) -> Configuration:
        """Return the configuration of its JSON.

        :raises ValueError: it is not JSON
        :raises TypeError: it has unknown fields
        """
        values = json.loads(text)
        sleepers = tuple(Sleeper(Machine.read(one.pop("machine")), **one) for one in map(dict, values.pop("sleepers")))
        return cls(sleepers, **values)


def may_sleep(name: str) -> bool:
    """Whether the last `up` let the machine sleep, and so let this one shut it down."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return name in {one.machine.name for one in Configuration.read(CONFIGURATION.read_text()).sleepers}
    return False


@contextlib.contextmanager
def alone(state: pathlib.Path, wait: bool = False) -> Iterator[None]:
    """Hold the lock of those who switch machines by what they see.

    :raises BusyError: another process holds it, and this does not `wait`
    """
    # Not for writing: the disk may be read-only.
    with open(os.open(state / "lock", os.O_RDONLY | os.O_CREAT, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise BusyError("another process looks at the machines") from None
        yield


class Memories:
    """What is remembered of all machines, in one file."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.text = ""
        found: Any = {}
        # At the first look, and if the file is broken, everything is found out again.
        with contextlib.suppress(OSError, ValueError):
            self.text = path.read_text()
            found = json.loads(self.text)
        self.machines = {name: decide.remembered(values) for name, values in found.get("machines", {}).items()}
        self.failed: dict[str, str] = found.get("failed", {})
        """the last error of each machine and act, so that it is reported once"""
        self.refused: dict[str, str] = found.get("refused", {})
        """a digest of the credentials that a device refused; they are not sent again"""

    def save(self) -> None:
        """Write them if they are others: an SD card lasts for a limited number of writes."""
        machines = {name: dataclasses.asdict(memory) for name, memory in self.machines.items()}
        text = json.dumps({"machines": machines, "failed": self.failed, "refused": self.refused})
        if text != self.text:
            durable.write(self.path, text.encode(), 0o600)


def accepted(machines: Iterable[Machine], state: pathlib.Path = STATE) -> None:
    """Let the next look ask devices again that refused these credentials before, and accept them now."""
    digests, path = {_digest(machine) for machine in machines}, state / MEMORY
    if digests.isdisjoint(Memories(path).refused.values()):
        return
    with alone(state, wait=True):
        memories = Memories(path)
        memories.refused = {name: digest for name, digest in memories.refused.items() if digest not in digests}
        memories.save()


class Watch:
    """One look. `log` gets an Entry for everything that is done, or goes wrong for the first time."""

    def __init__(
        self, configuration: Configuration, memories: Memories, log: Callable[[journal.Entry], object]
    ) -> None:
        self.configuration = configuration
        self.memories = memories
        self.log = log
        self.nodes: Mapping[str, Node] = {}
        self.unwritten: OSError | None = None

    def look(self) -> None:
        """Look at all machines and act. Does nothing while slurmctld does not answer."""
        self._keep_out_of_service()
        fields = self._show()
        if fields is None:
            return
        self.nodes = nodes = {name: Node.read(shown) for name, shown in fields.items()}
        operation = cluster_lock.is_held()
        known = {one.machine.name: one for one in self.configuration.sleepers if one.machine.name in nodes}
        _by_device(
            (one.machine for one in known.values()),
            lambda machine: self._guarded(machine, nodes[machine.name], operation),
        )
        self._let_sleep(known, nodes)
        self._forget()
        with self._writing():
            self.memories.save()

    def _keep_out_of_service(self) -> None:
        """Set again what slurmctld has forgotten: that nodes in power saving are drained, and why."""
        with self._writing(), drains.record() as reasons:
            for name, words in drains.forgotten(reasons, self._show() or {}).items():
                with contextlib.suppress(PowerError):
                    self._update(name, *words)
                    self._note(name, "keep it out of service", reasons[name])

    def _show(self, *names: str) -> dict[str, dict[str, str]] | None:
        """Return the fields of these nodes, or of all; None while slurmctld does not answer."""
        code, out, _ = run("scontrol", "--oneliner", "show", "node", *names, seconds=30)
        return None if code else read_nodes(out)

    def _forget(self) -> None:
        """Forget machines that may not sleep any more; their sleep ends here for `stead power savings`."""
        names = {one.machine.name for one in self.configuration.sleepers}
        for name in self.memories.machines.keys() - names:
            if self.memories.machines.pop(name).asleep:
                self._note(name, journal.AWAKE, "it may not sleep any more")
        self.memories.refused = {name: text for name, text in self.memories.refused.items() if name in names}

    def _let_sleep(self, known: Mapping[str, Sleeper], nodes: Mapping[str, Node]) -> None:
        now = time.time()
        idlers = [
            decide.Idler(name, now - node.idle_since if node.idle_since else 0.0, one.idle, one.watts)
            for name, one in known.items()
            if (node := nodes[name]).idle
            and not self._is_refused(one.machine)
            and f"{name} {LOOK}" not in self.memories.failed
            and now - self.memories.machines[name].unable >= decide.AGAIN
        ]
        chosen = [known[name].machine for name in decide.sleepers(idlers, self.configuration.keep)]
        able = _by_device(chosen, self._is_able)
        for machine in chosen:
            if cluster_lock.is_held():
                return
            if able[machine.name]:
                self._act(Act.SLEEP, "it has had no job for long enough", machine)

    def _is_able(self, machine: Machine) -> bool:
        """Whether a machine that is on could be shut down. If Slurm powers down another, no job gets that any more."""
        try:
            supply, silent = self._ask(machine)
            if supply is False:
                raise PowerError("its device says off, but it answers: the device may be that of another machine")
            if not silent:
                shutdown.check(machine)
        except Exception as error:
            self._failed(machine, error if isinstance(error, PowerError) else PowerError(repr(error)), Act.SLEEP.value)
            return False
        return not silent

    def _guarded(self, machine: Machine, node: Node, operation: bool) -> None:
        """Look at one machine; a defect of ours with one must not keep the others from sleeping and waking."""
        try:
            self._one(machine, node, operation)
        except Exception as error:
            self._failed(machine, PowerError(repr(error)), LOOK)
        else:
            self.memories.failed.pop(f"{machine.name} {LOOK}", None)

    def _one(self, machine: Machine, node: Node, operation: bool) -> None:
        name = machine.name
        before = self.memories.machines.get(name, Memory())
        seen = self._see(machine, node, operation)
        act, why, after = decide.decide(seen, before, self.configuration.resume_timeout)
        if act in (Act.SHUT_DOWN, Act.CUT) and not before.told and self._has_changed(name):
            return
        # Before the act, which corrects it if it fails.
        self.memories.machines[name] = after
        if after.asleep and not before.asleep:
            self._note(name, journal.ASLEEP)
        if before.asleep and not after.asleep:
            self._note(name, journal.AWAKE, "Slurm waits for it" if node.waking else "it is on")
        if act:
            self._act(act, why, machine, before.told)

    def _see(self, machine: Machine, node: Node, operation: bool) -> Seen:
        answers = shutdown.answers(machine)
        # A machine that answers has a supply: that spares its device thousands of questions a day.
        supply, silent = (True, self._is_refused(machine)) if answers else self._ask(machine)
        return Seen(node, time.time(), answers, supply, machine.cuts, operation, silent)

    def _ask(self, machine: Machine) -> tuple[bool | None, bool]:
        """Return what the device says, and whether it is silent."""
        if self._is_refused(machine):
            if machine.name not in self.memories.refused:
                said = "has refused these credentials before: `scripts/stead power status` tries them again"
                self._failed(machine, RefusedError(f"{machine.address} {said}"), ASK)
            return None, True
        try:
            supply = method(machine).is_on()
        except PowerError as error:
            self._failed(machine, error, ASK)
            return None, True
        self.memories.failed.pop(f"{machine.name} {ASK}", None)
        self.memories.refused.pop(machine.name, None)
        return supply, False

    def _is_refused(self, machine: Machine) -> bool:
        return _digest(machine) in self.memories.refused.values()

    def _failed(self, machine: Machine, error: PowerError, what: str) -> None:
        if isinstance(error, RefusedError):
            self.memories.refused[machine.name] = _digest(machine)
        key = f"{machine.name} {what}"
        if self.memories.failed.get(key) != str(error):
            self.memories.failed[key] = str(error)
            self._note(machine.name, "failed", f"{what}: {error}")

    def _act(self, act: Act, why: str, machine: Machine, told: float = 0.0) -> None:
        try:
            if act is Act.ON:
                # A machine that was just switched on may check its disks: nothing cuts its supply for an edge then.
                method(machine).on(stale=self.memories.machines[machine.name].attempts <= 1)
            elif act is Act.CUT:
                method(machine).off()
            elif act is Act.SHUT_DOWN:
                shutdown.shut_down(machine)
            elif self._has_changed(machine.name):
                return
            elif act is Act.GIVE_UP:
                self._update(machine.name, f"reason={DOES_NOT_WAKE}: {why}")
            else:
                for words in UPDATES[act]:
                    self._update(machine.name, *words)
        except PowerError as error:
            self._failed(machine, error, act.value)
            if act in (Act.SHUT_DOWN, Act.CUT):
                # A system that answers is told (again) before it is cut; what is silent is cut again, but no job waits
                # for ever.
                memory = self.memories.machines[machine.name]
                late = self.nodes[machine.name].waking and time.time() - told >= 2 * decide.SHUTDOWN
                told = told if memory.silent and not late else 0.0
                unable = time.time() if act is Act.SHUT_DOWN else memory.unable
                self.memories.machines[machine.name] = dataclasses.replace(memory, told=told, unable=unable)
        else:
            self.memories.failed.pop(f"{machine.name} {act.value}", None)
            self._note(machine.name, act.value, why)

    def _has_changed(self, name: str) -> bool:
        """Say whether a node has another state than when the look began: a power_down would undo a drain since then."""
        shown, before = (self._show(name) or {}).get(name), self.nodes[name]
        return shown is None or dataclasses.replace(Node.read(shown), idle_since=before.idle_since) != before

    def _update(self, name: str, *words: str) -> None:
        code, _, said = run("scontrol", "update", f"nodename={name}", *words, seconds=30)
        if code:
            raise PowerError(f"slurmctld refuses {words[0]}: {said.strip()}")

    def _note(self, name: str, what: str, why: str = "") -> None:
        with self._writing():
            self.log(journal.Entry(time.time(), name, what, why))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Write; a disk that is full or read-only keeps no machine off."""
        try:
            yield
        except OSError as error:
            self.unwritten = self.unwritten or error


def _by_device(machines: Iterable[Machine], do: Callable[[Machine], T]) -> dict[str, T]:
    """Return by name what `do` returns. What a device refuses for one machine is not sent for its others."""
    devices: dict[str, list[Machine]] = {}
    for machine in machines:
        devices.setdefault(machine.address or machine.name, []).append(machine)
    with ThreadPoolExecutor(TOGETHER) as pool:
        done = pool.map(lambda group: [(machine.name, do(machine)) for machine in group], devices.values())
        return dict(itertools.chain.from_iterable(done))


def _digest(machine: Machine) -> str:
    """Return what tells whether the credentials are other ones than before."""
    return hashlib.sha256(f"{machine.address}\n{machine.user}\n{machine.password}".encode()).hexdigest()


def main() -> None:
    """Look once, unless another process does; it does what is to be done."""
    configuration = Configuration.read(CONFIGURATION.read_text())
    with contextlib.suppress(BusyError), alone(STATE):
        watch = Watch(configuration, Memories(STATE / MEMORY), functools.partial(journal.write, LOG))
        watch.look()
        if watch.unwritten:
            sys.exit(f"cannot write what was done and seen: {watch.unwritten}")
