# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Keeps what an administrator set at run time while slurmctld reloads its files or restarts.

It is noted on the disk before, so that the next run sets it again if this one is killed. Meanwhile a reservation keeps
new jobs off the nodes of these partitions: a job that waits in a partition that an administrator has closed would start
as soon as slurmctld has loaded its files (seen with 22.05.8).
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.gate import gate as gate_gate
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm import decisions
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.jobs import State

NOTE = "decisions"
RESERVATION = "slurmstead-reload"
MINUTES = 5
"""Duration of the reservation in minutes, for the case that this run is killed."""

UNHEARD = (
    "was set at run time before an interrupted run and is not set again yet, because slurmctld did not answer; this "
    "run or the next sets it again when slurmctld answers"
)

STATE = "/var/spool"
"""Default StateSaveLocation of Debian's packages."""


class Decisions:
    """The decisions on the cluster of this control node."""

    def __init__(self, store: Store, slurm: Slurm) -> None:
        self.store = store
        self.slurm = slurm
        self.done: dict[str, str] = {}
        self.left: list[str] = []

    @property
    def kept(self) -> bool:
        """Whether decisions are noted that have to be set again."""
        return bool(self.store.recall(NOTE))

    def made(self, files: Mapping[str, str]) -> decisions.Note | None:
        """Return how slurmctld differs from the files that it has loaded; None if that cannot be told.

        The gate loads the files, because slurmctld completes and rewrites most values.
        """
        live = self.slurm.shown()
        if not live or "slurm.conf" not in files:
            return None
        directory = conf_model.read(files["slurm.conf"]).value("StateSaveLocation", STATE)
        loaded = gate_gate.passage(files, self.slurm.version(), State(), directory).shown
        return decisions.made(live, loaded) if loaded else None

    def keep(self, files: Mapping[str, str], minutes: int = MINUTES) -> list[str]:
        """Note the decisions before slurmctld reloads or stops; return warnings. `minutes` limits the reservation."""
        if self.kept:
            # Of a run that was killed.
            self.finish()
        if self.kept:
            return [f"{', '.join(decisions.in_words(self.store.recall(NOTE)))}: {UNHEARD}"]
        note = self.made(files)
        self.store.note(NOTE, note or {})
        if note is None and self.slurm.shown():
            return ["values that were set with `scontrol update` could not be determined; check the partitions"]
        if note and (nodes := decisions.nodes(note, self.slurm.shown())):
            words = [f"Duration={minutes}", "StartTime=now", "Users=root", "Flags=MAINT,IGNORE_JOBS", f"Nodes={nodes}"]
            code, out, err = run("scontrol", "create", f"ReservationName={RESERVATION}", *words)
            if code:
                return [f"jobs may start meanwhile in partitions that are closed: {(err or out).strip()}"]
        return []

    def give_back(self) -> bool:
        """Set the noted values again, if slurmctld answers; repeat this after each of its reloads."""
        note = self.store.recall(NOTE)
        live = self.slurm.shown() if note else {}
        if not live:
            return False
        steps, self.left = decisions.commands(note, live)
        for step in steps:
            code, out, err = run(*step)
            words = " ".join(step[2:])
            self.done[words] = (
                f"{words} could not be set again: {(err or out).strip()}; run `{' '.join(step)}`"
                if code
                else f"{words} was set at run time and was set again; to make it permanent, put it into the inventory"
            )
        return True

    def finish(self) -> list[str]:
        """Set them again and forget them; return a line for each. Without an answer they stay for the next run."""
        if self.give_back() and self.slurm.answers():
            # It does not exist if only nodes had decisions.
            run("scontrol", "delete", f"ReservationName={RESERVATION}")
            self.store.note(NOTE, {})
        lines = [*self.done.values(), *self.left]
        self.done, self.left = {}, []
        return lines
