# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The watcher of a run's leases: a process on this computer that ends with the run. See cluster_lock.py.

Its standard input is a Plan as JSON. It prints one line, also JSON, once every machine is locked or has failed:
`{"held": [names], "failed": {name: error}}`, or `{"refused": text, "machine": name}`, and ends in the latter case.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.reach.cluster_lock import AGAIN, BYE, FIRST, HELD, MEANWHILE, OTHER, READY

HEARTBEAT = 5.0
"""Seconds between two heartbeats."""

STALLED = 15.0
"""Seconds without an echo after which the watcher connects again."""

ANSWER = 60.0
"""Seconds for a machine to answer; emulated machines are slow, ssh itself gives up after 10."""

PAUSE = 5.0
"""Seconds between two attempts to get a lost lease back, until LEASE has passed; then only when a task needs it."""

TICK = 0.1
UNREACHABLE = 255
"""Exit code of ssh(1) if the connection failed."""

DENIED = "Permission denied"
"""In the error of ssh(1) if the machine accepts neither key nor user. Ansible may have another key, or a password."""


@dataclass(frozen=True)
class Plan:
    """What to watch: the process of the run, and for each machine the command that starts its holder, in order."""

    watched: int
    directory: str
    """where the leases are written to `leases.json`, and a file `ask` is touched by the run when it needs a lease"""
    machines: list[tuple[str, list[str]]]


@dataclass
class Machine:
    """A machine, and the connection to its holder."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    state: str = ""
    """READY, `asked` or HELD; empty before the first answer and without a connection"""
    begun: float = 0.0
    heard: bytes = b""
    beats: dict[str, float] = field(default_factory=dict)
    """heartbeats without an echo, and when they were sent"""
    beaten: float = 0.0
    ever: bool = False
    """whether this run ever held its lock"""
    lost: float = 0.0
    failed: float = 0.0
    refusal: str = ""
    """ssh's error, if it may not log in"""

    def send(self, text: str) -> None:
        """Send a line; a broken connection shows when it is read."""
        assert self.process and self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{text}\n".encode())


class Watcher:
    """Takes, keeps and returns the leases."""

    def __init__(self, plan: Plan) -> None:
        self.machines = [Machine(name, command) for name, command in plan.machines]
        self.directory = pathlib.Path(plan.directory)
        self.leases = cluster_lock.Leases(until={name: 0.0 for name, _ in plan.machines})
        self.written = ""
        self.arbiter: Machine | None = None
        self.answered = False
        self.selector = selectors.DefaultSelector()
        self.run = os.pidfd_open(plan.watched)
        self.selector.register(self.run, selectors.EVENT_READ)
        self.asked = 0.0

    def watch(self) -> None:
        """Run until the watched process ends, or another run refuses."""
        for machine in self.machines:
            self.connect(machine)
        while True:
            for key, _ in self.selector.select(TICK):
                if key.fd == self.run:
                    self.end()
                    return
                self.read(key.data)
            at = cluster_lock.now()
            for machine in self.machines:
                self.tend(machine, at)
            if not self.answered and self.start():
                return
            self.write()

    # The connections.

    def connect(self, machine: Machine) -> None:
        """Start a holder."""
        machine.state, machine.heard, machine.begun = "", b"", cluster_lock.now()
        machine.beats.clear()
        machine.process = subprocess.Popen(
            machine.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.selector.register(self._output(machine), selectors.EVENT_READ, machine)

    @staticmethod
    def _output(machine: Machine) -> IO[bytes]:
        assert machine.process and machine.process.stdout
        return machine.process.stdout

    def drop(self, machine: Machine, why: str = "") -> None:
        """End a connection. The run no longer relies on the lease, although the holder may still keep it."""
        process = machine.process
        if process is None:
            return
        self.selector.unregister(self._output(machine))
        assert process.stdin and process.stdout and process.stderr
        os.set_blocking(process.stderr.fileno(), False)
        said = why or (process.stderr.read() or b"").decode(errors="replace").strip()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        # A holder on this computer can be root's; it ends by itself.
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait(1)
        at, name = cluster_lock.now(), machine.name
        self.leases.until[name] = 0.0
        if machine.state == HELD:
            # The next attempt comes at once; the run must wait for it.
            machine.lost, machine.failed = at, 0.0
            self.leases.tried.pop(name, None)
        else:
            machine.failed = self.leases.tried[name] = at
            last = said.rpartition("\n")[2]
            if process.returncode not in (UNREACHABLE, -signal.SIGKILL):
                self.leases.why[name] = last or f"its holder ended with {process.returncode}"
            elif DENIED in said:
                machine.refusal = last
        machine.process, machine.state = None, ""
        if machine is self.arbiter:
            self.arbiter = None

    def read(self, machine: Machine) -> None:
        """Read what a holder says."""
        heard = os.read(self._output(machine).fileno(), 4096)
        if not heard:
            assert machine.process
            with contextlib.suppress(subprocess.TimeoutExpired):
                machine.process.wait(1)
            self.drop(machine)
            return
        *lines, machine.heard = (machine.heard + heard).split(b"\n")
        for line in lines:
            self.hear(machine, line.decode(errors="replace"))

    def hear(self, machine: Machine, line: str) -> None:
        """Act on a line of a holder."""
        word, _, rest = line.partition(" ")
        if word == READY:
            machine.state = READY
        elif word == HELD:
            machine.state, machine.ever = HELD, True
            self.leases.why.pop(machine.name, None)
            self.leases.until[machine.name] = machine.beaten + cluster_lock.LEASE
        elif word in (OTHER, MEANWHILE):
            self.leases.lost = self.leases.lost or f"{rest} (on {machine.name})"
        else:
            for beat in line.split():
                sent = machine.beats.pop(beat, 0.0)
                if sent and machine.state == HELD:
                    self.leases.until[machine.name] = sent + cluster_lock.LEASE

    def tend(self, machine: Machine, at: float) -> None:
        """Do what is due for a machine."""
        if machine.process is None:
            soon = machine.lost and at < machine.lost + cluster_lock.LEASE and at > machine.failed + PAUSE
            if soon or self.due(machine):
                self.connect(machine)
        elif machine.state == HELD:
            if machine.beats and at > min(machine.beats.values()) + STALLED:
                self.drop(machine, "no echo")
            elif at > machine.beaten + HEARTBEAT:
                machine.beaten = at
                machine.beats[str(at)] = at
                machine.send(str(at))
        elif at > machine.begun + ANSWER + (cluster_lock.LEASE if machine.state else 0):
            self.drop(machine, f"no answer within {at - machine.begun:.0f} s")
        elif machine.state == READY and self.may_ask(machine):
            machine.state, machine.beaten = "asked", at
            machine.send(AGAIN if machine.ever else FIRST)

    def due(self, machine: Machine) -> bool:
        """Say whether the run has asked for leases since the last attempt for a machine."""
        with contextlib.suppress(OSError):
            self.asked = float((self.directory / "ask").read_text())
        return machine.failed < self.asked

    # The start.

    def may_ask(self, machine: Machine) -> bool:
        """Say whether a machine may be locked now: only the arbiter before it is locked, so that two starts meet there.

        The arbiter is the first machine in the order that answers.
        """
        if self.answered:
            return True
        if self.arbiter is None:
            waiting = next((other for other in self.machines if not self.leases.tried.get(other.name)), None)
            self.arbiter = machine if machine is waiting else None
        return self.arbiter is not None and (machine is self.arbiter or self.arbiter.state == HELD)

    def start(self) -> bool:
        """Print the outcome of the start once it is known; return whether another run refuses."""
        refused = bool(self.leases.lost)
        failed = [machine for machine in self.machines if machine.process is None]
        held = [machine.name for machine in self.machines if machine.state == HELD]
        if refused:
            self.end()
            self.say({"refused": self.leases.lost})
        elif len(held) + len(failed) == len(self.machines):
            self.answered = True
            self.write()
            self.say({"held": held, "failed": {one.name: self.leases.why.get(one.name, one.refusal) for one in failed}})
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return refused

    @staticmethod
    def say(answer: dict[str, object]) -> None:
        """Write the one line of standard output."""
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()

    def write(self) -> None:
        """Tell the run, if something has changed. Its directory is removed when it ends."""
        text = json.dumps(vars(self.leases))
        if self.answered and text != self.written:
            self.written = text
            with contextlib.suppress(FileNotFoundError):
                self.leases.write(self.directory / "leases.json")

    def end(self) -> None:
        """Return all leases."""
        for machine in self.held():
            machine.send(BYE)
        until = cluster_lock.now() + 2
        for machine in self.held():
            assert machine.process
            with contextlib.suppress(subprocess.TimeoutExpired):
                machine.process.wait(max(0.0, until - cluster_lock.now()))
        for machine in self.machines:
            self.drop(machine)

    def held(self) -> Iterator[Machine]:
        """Return the machines that may be locked."""
        return (machine for machine in self.machines if machine.process and machine.state in ("asked", HELD))


def main() -> None:
    """Run the watcher."""
    given = json.load(sys.stdin)
    Watcher(Plan(given["watched"], given["directory"], given["machines"])).watch()


if __name__ == "__main__":
    main()
