# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Applies a set of files to the cluster: check, publish, apply, prove, and roll back if the proof fails.

A power cut can follow any step: the next run sees that the active set was never proven, and does the rest. Nothing is
written before everything has been checked.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.change import check as change_check
from ansible.module_utils.slurmstead.change.classify import classify
from ansible.module_utils.slurmstead.change.decisions import STATE, Decisions
from ansible.module_utils.slurmstead.change.plan import Plan
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.change.workers import Workers
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf import needs as conf_needs
from ansible.module_utils.slurmstead.conf.needs import Action, forks
from ansible.module_utils.slurmstead.gate import gate as gate_gate
from ansible.module_utils.slurmstead.gate import verdict as gate_verdict
from ansible.module_utils.slurmstead.reach import cluster_lock
from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm.answers import LOADED, has_loaded
from ansible.module_utils.slurmstead.slurm.daemons import Service, Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import State

HEALTHY = 20.0
"""Seconds in which slurmctld must answer with a new set. Together with a rollback it takes less than 30."""

SLOW = 10
"""On a slow machine slurmctld may take this many times the duration of the gate, if that is longer than HEALTHY."""

ALONE = 120.0
"""Seconds in which slurmctld must answer if there is no set to roll back to."""

WAIT = 24 * 3600.0
"""Seconds that a run waits for jobs to end."""

TOO_SLOW = "timed out"
"""Part of what scontrol says when it has waited for MessageTimeout (10 s); the request may be carried out."""

PAUSE = 0.2
LOOK = 5.0
"""Seconds between two checks of a starting daemon, and of ending jobs."""

CERTAIN = 30.0
"""Seconds after its start in which slurmctld does not consider a job lost that a node does not report.

They are BatchStartTimeout and the timeout of a message, 10 each (_purge_missing_jobs in src/slurmctld/job_mgr.c).
"""

SETTLE = 5.0
"""Seconds in which pending jobs start on freed resources, so that duplicate job numbers are found."""

UNHEARD = "slurmctld does not show its queue, so blocking jobs are unknown; run it again"
WAY = "To wait for these jobs and then make the change, set slurm_when_idle: true"

COUNTED = "jobs-counted"
"""Name of a note: the start time of the slurmctld to which the workers last reported their jobs."""


class RefusedError(Exception):
    """Nothing was changed; the text has a line for each reason."""


class FailedError(Exception):
    """The new set did not work; the text says why, and which configuration is active now."""


@dataclass
class Outcome:
    """The changes made, or in check mode those that would be."""

    changed: bool = False
    plan: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    restart_slurmd: list[str] = field(default_factory=list)
    """Nodes whose slurmd still needs a restart."""
    gate_seconds: float = 0.0


class Run:
    """One run. `files` are the texts of the managed files by name; a file with an empty text is not published."""

    def __init__(self, files: Mapping[str, str], store: Store, service: Service, slurm: Slurm) -> None:
        self.files = {name: text for name, text in files.items() if text}
        self.store = store
        self.service = service
        self.slurm = slurm
        self.workers = Workers(store, slurm)
        self.decisions = Decisions(store, slurm)
        self.expected = conf_model.read(files["slurm.conf"])
        self.patience = ALONE
        self.holder = cluster_lock.holder()

    def go(self, check_mode: bool, when_idle: bool) -> Outcome:
        """Run all steps. Raises RefusedError and FailedError."""
        version = self.slurm.version()
        if not version:
            if check_mode:
                return Outcome(True, ["slurmctld is not installed yet: first installation"])
            raise RefusedError("slurmctld is not installed; run `stead up` without --tags")
        answers = self.slurm.answers()
        # Of a run that was killed while slurmctld reloaded.
        given_back = [] if check_mode else self.decisions.finish()
        try:
            # A file that an administrator edited to the wanted text may not have been loaded.
            if self.store.differs(self.files) or not self.store.is_proven or self.store.is_edited:
                outcome = self._change(version, answers, check_mode, when_idle)
            elif why := self._ailment(answers) or self._unread():
                outcome = Outcome(True, [f"{why}: restart slurmctld"])
                if not check_mode:
                    if answers:
                        outcome.warnings += self.decisions.keep(self._bases()[0])
                    self._revive(self.slurm.state() if answers else State(heard=False))
                    outcome.warnings += self.decisions.finish()
            else:
                outcome = Outcome()
                if not check_mode:
                    self._count_jobs(version)
        finally:
            if not (check_mode or cluster_lock.successor(self.holder)):
                self.workers.release()
        if not check_mode:
            outcome.restart_slurmd = self.workers.outstanding()
        outcome.warnings += given_back
        return outcome

    def _change(self, version: str, answers: bool, check_mode: bool, when_idle: bool) -> Outcome:
        bases = self._bases()
        old = bases[0]
        state = self._jobs() if answers else self._asleep(old, version)
        verdict, state = self._judge_again(bases, version, state, answers)
        may_wait, until = when_idle and not check_mode, time.monotonic() + WAIT
        while may_wait and verdict.plan.refusals and time.monotonic() < until:
            state = self._wait(verdict.plan, old, version, until)
            verdict, state = self._judge_again(bases, version, state, answers)
        if answers and not state.heard:
            raise RefusedError(UNHEARD)
        if verdict.plan.refusals:
            raise RefusedError("\n".join(verdict.plan.refusals + ([] if may_wait else [WAY])))
        outcome = Outcome(True, self._lines(verdict.plan, old, answers), gate_seconds=verdict.gate_seconds)
        outcome.warnings = [str(finding) for finding in verdict.warnings]
        if not check_mode:
            if old.get("slurm.conf") and answers:
                state = self._keep_decisions(bases, version, verdict.plan, state, outcome)
            self._apply(verdict.plan, old, answers, state if answers else State(heard=False), outcome)
        return outcome

    def _judge_again(
        self, bases: list[dict[str, str]], version: str, state: State, answers: bool
    ) -> tuple[change_check.Verdict, State]:
        """Return the verdict, and the jobs afterwards: some can have started while the gate ran."""
        verdict = self._judge(bases, version, state)
        if answers and not verdict.plan.refusals:
            state = self._jobs()
            verdict = dataclasses.replace(verdict, plan=self._plan(bases, version, state))
        return verdict, state

    def _keep_decisions(
        self, bases: list[dict[str, str]], version: str, plan: Plan, state: State, outcome: Outcome
    ) -> State:
        """Note the decisions before slurmctld reloads; return the jobs afterwards, because this takes another gate."""
        if plan.action is Action.NOTHING and not self._ailment(answers=True):
            return state
        outcome.warnings += self.decisions.keep(bases[0])
        state = self._jobs()
        refusals = self._plan(bases, version, state).refusals if state.heard else [UNHEARD]
        if refusals:
            raise RefusedError("\n".join([*refusals, *self.decisions.finish()]))
        return state

    def _jobs(self) -> State:
        """Return the jobs of a slurmctld that answers, and which of them have images if images are in use."""
        state = self.slurm.state()
        known = (self.store.proven() or {}).keys() | self.store.seen().keys()
        return self.slurm.find_images(state) if conf_needs.OCI in known else state

    def _asleep(self, old: Mapping[str, str], version: str) -> State:
        """Return the jobs in the saved state of a slurmctld that does not answer, if its files can load it."""
        if not old.get("slurm.conf"):
            return State(heard=False)
        queue = gate_gate.passage(old, version, State(), _state_directory(old)).queue
        return slurm_jobs.find_images(queue, None)

    def _count_jobs(self, version: str) -> None:
        """Once after each start of slurmctld, make the workers report their jobs.

        If slurmctld was killed, its state lacks the jobs that ended in the last seconds before; they would occupy their
        nodes for half an hour. This does not count as a change: if slurmctld's state was right, nothing happens. It
        would undo what an administrator set at run time, so in that case it is skipped.
        """
        if forks(version):
            # In these versions, a reconfigure would replace all daemons.
            return
        started = self.slurm.started_at()
        known = self.store.recall(COUNTED).get("start", 0.0)
        if not known < started < time.time() - CERTAIN:
            return
        state = self.slurm.state()
        if state.running and (self.decisions.made(self.store.seen()) != {} or self.slurm.reconfigure()):
            return
        self.store.note(COUNTED, {"start": started})
        if state.running and any(job.pending for job in state.jobs):
            time.sleep(SETTLE)

    def _ailment(self, answers: bool) -> str:
        """Return why slurmctld must be restarted with its current files; empty if it need not be."""
        if not answers:
            return "slurmctld does not answer"
        if self.service.outlived_munged():
            return "slurmctld is older than munged"
        if users := self.slurm.unknown_users():
            more = f" and {len(users) - 1} more" if len(users) > 1 else ""
            return f"slurmctld does not know the user {users[0]}{more} as this machine does"
        return ""

    def _unread(self) -> str:
        """Return a message if slurmctld runs with other files than those on disk, such as an edit that was reverted."""
        noted = self.store.recall(LOADED).get("hashes", "")
        return "slurmctld has not loaded its files" if has_loaded(self.slurm.hashes(), noted) is False else ""

    def _note_loaded(self) -> None:
        """Record that slurmctld has loaded the active files."""
        self.store.note(LOADED, {"hashes": self.slurm.hashes()})

    def _revive(self, before: State) -> None:
        """Start slurmctld with the proven set."""
        try:
            self._restart(before)
            self._note_loaded()
        except FailedError as error:
            said = gate_verdict.died_of(self.service.words())
            raise FailedError(f"The last good configuration is active, but: {error}; slurmctld said: {said}") from None

    def _judge(self, bases: list[dict[str, str]], version: str, state: State) -> change_check.Verdict:
        """Return the verdict on the new set. Raises RefusedError for mistakes."""
        old, new = bases[0], self._all(self.files)
        where = _state_directory(old if old.get("slurm.conf") else new)
        verdict = change_check.check(old, new, version, state, where)
        if verdict.mistakes:
            raise RefusedError("\n".join(str(mistake) for mistake in verdict.mistakes))
        return dataclasses.replace(verdict, plan=self._plan(bases, version, state))

    def _plan(self, bases: list[dict[str, str]], version: str, state: State) -> Plan:
        """Return the plan that changes any of the bases into the new set."""
        new = self._all(self.files)
        plan = classify(bases[0], new, version, state)
        # Undoing an edit that the daemons may never have read harms no job.
        planned = {change.difference for change in plan.changes}
        edits = [change for base in bases[1:] for change in classify(base, new, version, state).changes]
        undone = [change.harmless for change in edits if change.difference not in planned]
        return Plan((*plan.changes, *undone))

    def _all(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return a set together with the unmanaged files in /etc/slurm."""
        gone = self.store.managed() - files.keys()
        return {**{name: text for name, text in self.store.seen().items() if name not in gone}, **files}

    def _bases(self) -> list[dict[str, str]]:
        """Return the configurations that the daemons may have read: the last good set, an edit of it, or both."""
        seen, good = self.store.seen(), self.store.proven()
        if good is None:
            return [seen]
        others = {name: text for name, text in seen.items() if name not in good and name not in self.files}
        # slurmctld has read files written before it started; it may also have read files written or published since.
        if self.store.is_proven and self.slurm.started_at() > self.store.edited_at(self.files):
            return [seen] if "slurm.conf" in seen else [{**others, **good}]
        return [{**others, **good}, *([seen] if "slurm.conf" in seen else [])]

    def _lines(self, plan: Plan, old: Mapping[str, str], answers: bool) -> list[str]:
        if not old.get("slurm.conf"):
            return ["first installation: start slurmctld"]
        same = "only comments, order or spelling differ" if self.store.differs(self.files) else "the files are active"
        lines = plan.lines or [f"{same}: no daemon is touched"]
        if why := self._ailment(answers):
            lines.append(f"{why}: restart slurmctld")
        if not self.store.is_proven and self.store.proven() is not None:
            lines.insert(0, "an earlier run was interrupted before its configuration was proven: this run continues it")
        return lines

    def _apply(self, plan: Plan, old: Mapping[str, str], answers: bool, before: State, outcome: Outcome) -> None:
        good = self.store.proven()
        if good is None and old.get("slurm.conf") and answers:
            # slurmctld runs with an administrator's own files.
            self.store.publish({name: text for name, text in old.items() if name in self.files})
            self.store.prove()
        if self.store.proven() is not None:
            self.patience = max(HEALTHY, SLOW * outcome.gate_seconds)
        kept = self.store.publish(self.files)
        if kept:
            outcome.warnings.append(f"/etc/slurm had changes not made by Slurmstead; the files found are in {kept}")
        if old.get("slurm.conf"):
            self.workers.remember(plan.restart_slurmd)
        try:
            if plan.action is Action.RESTART or self._ailment(answers):
                # Only a restarted slurmd loads these changes; after a mere reread it would look as if it had been
                # restarted.
                self._restart(before, tell=plan.restart_slurmd < self.expected.nodes.keys())
            elif plan.action is Action.RECONFIGURE:
                self._reconfigure(before)
            else:
                self._prove(before)
        except FailedError as error:
            said = gate_verdict.died_of(self.service.words())
            shown = f"The new configuration does not work: {error}{f'; slurmctld said: {said}' if said else ''}"
            raise FailedError("\n".join([shown, self._back(), *self.decisions.finish()])) from None
        outcome.warnings += self.decisions.finish()
        self._note_loaded()
        self.store.prove()

    def _restart(self, before: State, tell: bool = True) -> None:
        """Restart slurmctld, and make the workers fetch its files."""
        self.service.restart()
        self._prove(before)
        if tell:
            self._reconfigure(before)

    def _reconfigure(self, before: State) -> None:
        until = time.monotonic() + self.patience
        while why := self.slurm.reconfigure():
            # From 23.11 the answer comes from a new daemon, which may start more slowly than scontrol waits.
            if TOO_SLOW not in why or time.monotonic() > until:
                raise FailedError(f"scontrol reconfigure: {why}")
            time.sleep(PAUSE)
        self._prove(before)

    def _prove(self, before: State) -> None:
        """Wait until slurmctld answers with all nodes and jobs. Raises FailedError."""
        until, why = time.monotonic() + self.patience, ""
        while True:
            why = self._unhealthy(before)
            if not why:
                # At once, because jobs can start in a partition that an administrator has closed.
                self.decisions.give_back()
                return
            if time.monotonic() > until or self.service.state() == "failed":
                raise FailedError(why)
            time.sleep(PAUSE)

    def _unhealthy(self, before: State) -> str:
        if self.service.state() != "running":
            return "slurmctld is not running"
        if not self.slurm.answers():
            return "slurmctld does not answer"
        nodes = self.slurm.nodes()
        hidden = {
            name
            for name, keys in self.expected.nodes.items()
            if "state" in keys and keys["state"].value.upper() == "FUTURE"
        }
        missing = self.expected.nodes.keys() - nodes.keys() - hidden
        if missing:
            return f"slurmctld does not know {compress(missing)}"
        after = self.slurm.state()
        if not after.heard:
            return "slurmctld does not show its queue"
        kept = float(self.expected.value("MinJobAge", "300") or 0) > 3 * HEALTHY
        lost = slurm_jobs.lost(before.live, slurm_jobs.by_number(after), kept, self.service.words)
        return "; ".join(f"{slurm_jobs.in_words([job])} was {fate}" for job, fate in lost)

    def _back(self) -> str:
        """Roll back to the last good set; return which configuration is active now."""
        if not self.store.restore():
            return "There is no earlier configuration to restore: fix the cause and run it again"
        self.expected = conf_model.read((self.store.proven() or {}).get("slurm.conf", ""))
        self.service.restart()
        try:
            self._prove(State())
        except FailedError as error:
            return f"The last good configuration is active again, but: {error}"
        self.slurm.reconfigure()
        return "The last good configuration is active again, and slurmctld runs with it"

    def _wait(self, plan: Plan, old: Mapping[str, str], version: str, until: float) -> State:
        """Wait until no job blocks the plan; meanwhile nodes that must become idle accept no new jobs."""
        while True:
            if plan.waiting_helps:
                self.workers.drain(plan.blocked_nodes)
            time.sleep(LOOK)
            if other := cluster_lock.successor(self.holder):
                raise RefusedError(f"Nothing was changed: {other} has taken over the cluster lock")
            state = self._jobs()
            plan = classify(old, self._all(self.files), version, state)
            if (state.heard and not plan.refusals) or time.monotonic() > until:
                return state


def _state_directory(files: Mapping[str, str]) -> str:
    return conf_model.read(files["slurm.conf"]).value("StateSaveLocation", STATE)
