# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Takes workers out of service in Slurm, and brings them back.

A worker taken out of service is drained with a reason that identifies the operation, so that the operation finds it
again after an interruption, or after the whole cluster was off. A node that an administrator drained or put
down is neither changed nor resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.reach.deadline import wait_while
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm.answers import flags
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job, State
from ansible.module_utils.slurmstead.workers.reasons import (
    drained,
    is_drained,
    is_left_alone,
    is_put_down,
    missed,
    unwell,
)
from ansible.module_utils.slurmstead.workers.reboot import sleeps

PAUSE = 2.0

REGISTER = 60.0
"""Seconds in which slurmd of a machine that answers should register. One with an old MUNGE key cannot."""

SURE = 5.0
"""Seconds after which a job that was just starting when its node was drained is visible."""

ABSENT = frozenset({"DOWN", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_UP", "UNKNOWN"})
"""States of a worker that is unavailable."""

NEVER = "None"
"""SlurmdStartTime of a worker that has not registered since slurmctld started; its state is out of date."""


class ServiceError(Exception):
    """The workers did not reach the wanted state; the text says why and what to do."""


@dataclass(frozen=True)
class Done:
    """The changes; `said` describes them, one line each. `asleep` are the workers in power saving, where asked for."""

    changed: bool
    said: tuple[str, ...]
    asleep: tuple[str, ...] = ()


Nodes = Mapping[str, Mapping[str, str]]
"""The fields of each node as Slurm.nodes() returns them."""


def unready(nodes: Nodes, names: Iterable[str]) -> list[str]:
    """Return each worker that does not answer slurmctld, or fails its health check, with its state.

    >>> unready({"n1": {"State": "IDLE*", "Reason": ""}, "n2": {"State": "IDLE", "Reason": ""}}, ["n1", "n2", "n3"])
    ['n1 (IDLE*)', 'n3 (unknown to slurmctld)']
    """
    found = []
    for name in sorted(names):
        shown = nodes.get(name)
        if shown is None:
            found.append(f"{name} (unknown to slurmctld)")
        elif unwell(shown):
            found.append(f"{name} ({shown['State']}, {shown['Reason']})")
        elif shown.get("SlurmdStartTime") == NEVER:
            found.append(f"{name} ({shown['State']}, slurmd has not registered yet)")
        elif flags(shown) & ABSENT and not is_put_down(shown):
            found.append(f"{name} ({shown['State']})")
    return found


def on(state: State, names: Iterable[str]) -> tuple[Job, ...]:
    """Return the jobs that are on any of the workers."""
    chosen = set(names)
    return tuple(job for job in state.running if chosen & set(job.nodes))


class Service:
    """Some workers, by name. Workers that slurmctld does not know count as out of service."""

    def __init__(
        self, names: Iterable[str], reason: str, slurm: Slurm, answers: Callable[[str], bool] = lambda _: False
    ) -> None:
        """`answers` tells whether a machine with this address is on."""
        self.names = sorted(names)
        self.reason = reason
        self.slurm = slurm
        self.answers = answers
        self.holder = cluster_lock.holder()

    def _jobs(self) -> tuple[Job, ...]:
        state = self.slurm.state()
        if not state.heard:
            raise ServiceError("slurmctld does not answer, so its jobs are unknown; see `systemctl status slurmctld`")
        return on(state, self.names)

    def _nodes(self) -> Nodes:
        nodes = self.slurm.nodes()
        if not nodes:
            raise ServiceError("slurmctld does not answer; see `systemctl status slurmctld`")
        return nodes

    def take_out(self, jobs: str, deadline: float, check_mode: bool) -> Done:
        """Drain the workers and end their jobs. `jobs` is refuse, wait or cancel, `deadline` in seconds.

        Raises ServiceError; the workers are then unchanged.
        """
        running, nodes = self._jobs(), self._nodes()
        known = [name for name in self.names if name in nodes]
        # A killed run drained these, so this run must resume them.
        left = drained(nodes, known, self.reason)
        if running and jobs == "refuse":
            raise ServiceError(self._refusal(running, left))
        new = [name for name in known if not is_left_alone(nodes[name]) or unwell(nodes[name])]
        before = {name: nodes[name] for name in (*new, *left)}
        if check_mode:
            return Done(bool(new), (f"{compress(new)} would be drained",) if new else ())
        if new:
            self.slurm.update(compress(new), "DRAIN", self.reason)
            time.sleep(SURE)
            running = self._jobs()
            deaf = sorted(set(new) - set(drained(self.slurm.nodes(), new)))
            if deaf:
                raise ServiceError(f"slurmctld did not drain {compress(deaf)}; see its log, then repeat the command")
        if running and jobs == "refuse":
            self._undo(before)
            raise ServiceError(self._refusal(running))
        if running and jobs == "cancel":
            self.slurm.cancel(running)
        self._see_end(before, running, deadline)
        said = [f"{compress(new)} drained: {self.reason}"] if new else []
        if running:
            said.append(f"{'cancelled' if jobs == 'cancel' else 'waited for'} {slurm_jobs.in_words(running)}")
        return Done(bool(new or running), tuple(said))

    def _see_end(self, before: Nodes, running: tuple[Job, ...], deadline: float) -> None:
        until = time.monotonic() + deadline
        while running:
            if other := cluster_lock.successor(self.holder):
                # The new lock holder finds the drain by its reason, and only that run may undo it.
                raise ServiceError(f"{other} has taken over the cluster lock")
            if time.monotonic() > until:
                self._undo(before)
                raise ServiceError(
                    f"{slurm_jobs.in_words(running)} did not end within {deadline / 60:.0f} min; "
                    "the workers accept jobs as before. Wait longer with --deadline, or cancel these jobs"
                )
            time.sleep(PAUSE)
            state = self.slurm.state()
            # slurmctld may be restarted while this waits, so a missing answer is not an error.
            running = on(state, self.names) if state.heard else running

    def _undo(self, before: Nodes) -> None:
        """Resume workers, except those that their health check or, since then, an administrator drained."""
        nodes = self.slurm.nodes()
        ours = drained(nodes, before, self.reason)
        fit = [name for name in ours if not unwell(before[name])]
        if fit:
            self.slurm.resume({name: nodes[name] for name in fit})
        for name in sorted(set(ours) - set(fit)):
            self.slurm.update(name, "DRAIN", before[name]["Reason"])

    def _refusal(self, running: tuple[Job, ...], left: Iterable[str] = ()) -> str:
        names = compress(left)
        drains = f"; still drained by an interrupted run ({self.reason}): {names}" if names else ""
        return (
            f"nothing was changed, because of {slurm_jobs.in_words(running)}; wait for it with --when-idle, "
            f"or end it with --cancel-jobs{drains}"
        )

    def bring_back(self, deadline: float, check_mode: bool) -> Done:
        """Resume workers drained with the reason, and wait until all are ready for jobs. `deadline` in seconds.

        Raises ServiceError with the workers that are not ready.
        """
        resumed = self._resume(check_mode)
        if check_mode:
            return resumed
        if missing := wait_while(lambda: self._unready(self.slurm.nodes()), deadline, PAUSE):
            raise ServiceError(
                f"not in service after {deadline / 60:.0f} min: {', '.join(missing)}; is it on? "
                "See `journalctl -u slurmd` there, then repeat the command"
            )
        nodes = self.slurm.nodes()
        kept = {name: nodes[name] for name in self.names if name in nodes and is_left_alone(nodes[name])}
        served = sorted(set(self.names) - kept.keys())
        said = [f"{compress(served)} in service"] if served else []
        for name, shown in kept.items():
            said.append(f"{name} stays {'drained' if is_drained(shown) else 'down'}: {shown['Reason']}")
        return Done(resumed.changed, tuple(said))

    def _unready(self, nodes: Nodes) -> list[str]:
        # A machine that slept while the MUNGE key changed cannot register; it stays drained until it has the key.
        return unready(nodes, [name for name in self.names if not missed(nodes.get(name, {}))])

    def resume(self, check_mode: bool) -> Done:
        """Resume workers drained with the reason, and name those that are not ready for jobs yet.

        Raises ServiceError.
        """
        resumed = self._resume(check_mode)
        missing = unready(self.slurm.nodes(), self.names)
        return Done(resumed.changed, (*resumed.said, *(f"waits for {name}" for name in missing)))

    def resume_asleep(self, check_mode: bool) -> Done:
        """Resume workers drained with the reason that are in power saving and off: they wake for jobs.

        Raises ServiceError.
        """
        nodes = self._nodes()
        booting = self._booting(nodes, self.names)
        asleep = [name for name in self.names if name in nodes and sleeps(nodes[name]) and name not in booting]
        resumed = Service(asleep, self.reason, self.slurm)._resume(check_mode)
        return Done(resumed.changed, resumed.said, tuple(asleep))

    def _booting(self, nodes: Nodes, names: Iterable[str]) -> list[str]:
        """Return the workers in power saving that are on, and so will register."""
        down = [name for name in names if "POWERED_DOWN" in flags(nodes.get(name, {"State": ""}))]
        with ThreadPoolExecutor(16) as pool:
            answered = pool.map(self.answers, [nodes[name].get("NodeAddr", name) for name in down])
            return [name for name, answer in zip(down, answered, strict=True) if answer]

    def _unregistered(self) -> list[str]:
        nodes = self._nodes()
        return self._booting(nodes, drained(nodes, self.names, self.reason))

    def _resume(self, check_mode: bool) -> Done:
        if not check_mode:
            # A job would make slurmctld wait for another boot of such a machine.
            wait_while(self._unregistered, REGISTER, PAUSE)
        nodes = self._nodes()
        ours = drained(nodes, self.names, self.reason)
        if ours and not check_mode:
            kept = self.slurm.resume({name: nodes[name] for name in ours})
            ours = [name for name in ours if name not in kept]
        said = f"{compress(ours)} {'would be resumed' if check_mode else 'resumed'}"
        return Done(bool(ours), (said,) if ours else ())
