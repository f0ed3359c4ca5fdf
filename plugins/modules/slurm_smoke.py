#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Prove with jobs of an ordinary user that a Slurm cluster works."""

from __future__ import annotations

DOCUMENTATION = r"""
module: slurm_smoke
short_description: Prove with jobs of an ordinary user that a Slurm cluster works
description:
  - Runs on the control node as an ordinary user and submits three small jobs at once. One probes all workers, one
    exceeds its memory limit on all workers, one is a batch job. Each requests one CPU and 64 MiB per node.
  - A failed check does not fail the task; the caller must evaluate C(ok).
  - If jobs of other users leave no room, waits for at most half of O(deadline). Then it tests the free nodes and names
    the busy ones and their jobs.
  - The test removes its jobs and files when it ends, for whatever reason. If it is killed, slurmctld removes its jobs
    within O(deadline) plus two minutes, and the next run removes its files.
  - Needs neither accounting nor a working share, and changes nothing permanently, so it does the same in check mode.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  workers: {type: list, elements: str, required: true, description: Names of the nodes that must work.}
  control: {type: str, required: true, description: Name of the node that the module runs on.}
  share: {type: path, required: true, description: The directory that all nodes share.}
  scratch: {type: path, required: true, description: The directory on each node's own disk that holds every $SCRATCH.}
  deadline: {type: int, default: 60, description: Maximum duration of the test in seconds. At least 20.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Test the cluster
  slurm_smoke:
    workers: [node1, node2, node4]
    control: node3
    share: /share
    scratch: /scratch
  become: true
  become_user: alice
  register: smoke
"""

RETURN = r"""
ok: {description: Whether all checks passed., type: bool, returned: always}
checks:
  description: An entry for each of nodes, srun, sbatch, one-cpu, memory-limit, share, scratch and munge, in this order.
  type: list
  elements: dict
  returned: always
  sample: [{name: srun, ok: true, expected: 3 distinct host names, seen: "node[1-2,4]", hint: ""}]
lines:
  description: The same, one line for each check.
  type: list
  elements: str
  returned: always
  sample: ["ok    srun: node[1-2,4]"]
"""

import contextlib
import math
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.slurm import jobs as slurm_jobs
from ansible.module_utils.slurmstead.slurm import nodes as slurm_nodes
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.jobs import Job
from ansible.module_utils.slurmstead.smoke import causes, commands, probe, share, verdicts
from ansible.module_utils.slurmstead.smoke.findings import Findings, Problem
from ansible.module_utils.slurmstead.smoke.report import Check
from ansible.module_utils.slurmstead.smoke.steps import Step, stop
from ansible.module_utils.slurmstead.smoke.waiting import NoAnswerError, bounded

ANSWER = 10.0
"""Timeout in seconds for Slurm's client commands and the share; the same as Slurm's MessageTimeout."""

GROUPS = 16
"""Number of simultaneous jobs of one kind to find the nodes that do not answer."""

CLEAN_UP = 4.0
"""Seconds of the deadline reserved for the removal of jobs and files."""

PAUSE = 0.5
"""Seconds between two checks of the queue or the share."""

PYTHON = ("/usr/bin/python3", "-I", "-S", "-c")


class EndedError(Exception):
    """A signal asked the module to end."""


class Run:
    """One run of the smoke test; a context that removes its jobs and files."""

    def __init__(self, found: Findings, deadline: float) -> None:
        self.found = found
        self.begin = time.monotonic()
        self.end = self.begin + deadline - CLEAN_UP
        self.start_by = self.begin + deadline / 2
        self.run_limit = deadline / 4
        self.minutes = math.ceil(self.run_limit / 60)
        self.name = f"smoke-{found.nonce}"
        self.env = commands.environment(os.environ)
        self.steps: list[Step] = []
        self.directory = ""
        self.lost = False
        self.now: dict[str, slurm_nodes.Node] = {}
        """The state of the nodes when a step last left a node without an answer."""
        self.others: dict[str, dict[str, str]] = {}
        self.waiting_for: dict[str, str] = {}
        """Job name → squeue's reason why it waits."""

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.steps, "the test ended")
        for step in self.steps:
            step.out.close()
            step.err.close()
        # If slurmctld does not answer, jobs cannot be cancelled; --deadline and --time end them when it is back.
        if not self.lost:
            with contextlib.suppress(NoAnswerError):
                numbers = [job.number for job in self.queue() if job.state not in slurm_jobs.ENDED]
                if numbers:
                    self.slurm("scancel", *numbers)
        if self.directory:
            with contextlib.suppress(NoAnswerError):
                bounded(lambda: shutil.rmtree(self.directory, ignore_errors=True), CLEAN_UP, self.directory)

    def patience(self) -> float:
        """Current timeout for an answer in seconds."""
        return min(ANSWER, max(self.end - time.monotonic(), 1.0))

    def slurm(self, *command: str, script: str | None = None) -> str:
        """The output of a client command of Slurm or MUNGE. Raises NoAnswerError with the command's error."""
        limit = self.patience()
        try:
            done = subprocess.run(
                command, input=script or "", capture_output=True, text=True, timeout=limit, env=self.env, cwd="/"
            )
        except subprocess.TimeoutExpired:
            raise NoAnswerError(f"{command[0]} did not answer within {limit:.0f} s") from None
        except OSError as error:
            raise NoAnswerError(f"{command[0]}: {error.strerror}") from None
        if done.returncode:
            said = commands.complaint(done.stderr) or done.stdout.strip()[:200]
            raise NoAnswerError(said or f"{command[0]} exited with {done.returncode}")
        return done.stdout

    def look(self) -> dict[str, slurm_nodes.Node]:
        """The state of all nodes."""
        try:
            return slurm_nodes.read_sinfo(self.slurm(*slurm_nodes.SINFO))
        except ValueError as error:
            raise NoAnswerError(str(error)) from None

    def queue(self) -> tuple[Job, ...]:
        """The jobs of this test, including ended ones."""
        names = ",".join([f"{self.name}-batch"] + [step.name for step in self.steps])
        return self.squeue("--states=all", f"--name={names}")

    def squeue(self, *options: str) -> tuple[Job, ...]:
        """The jobs selected by these options."""
        return slurm_jobs.read_queue(self.slurm("squeue", "--noheader", *options, slurm_jobs.NAMED)).jobs

    def ask(self, name: str, partition: str) -> list[str]:
        """Options of a job of this test."""
        give_up = math.ceil(self.end - time.monotonic())
        return commands.ask(name, partition, probe.ASKED_MIB, self.minutes, max(give_up, 1))

    def credential(self) -> None:
        """A credential that only this user can decode, for all workers; tested on control first."""
        create = ("munge", "--no-input", f"--restrict-uid={os.getuid()}")
        try:
            made = self.slurm(*create).strip()
            self.slurm("unmunge", script=self.slurm(*create))
        except NoAnswerError as error:
            self.found.munge_error, made = str(error), ""
        # In the environment, because every user of a worker can read the arguments of a process.
        self.env["SLURMSTEAD_SMOKE_CREDENTIAL"] = made

    def make_directory(self) -> None:
        """A directory of this test on the share, with a file that control wrote."""
        found = self.found
        try:
            self.directory = bounded(lambda: share.make(found.share, found.nonce), self.patience(), found.share)
        except NoAnswerError as error:
            found.share_error = str(error)

    def submit_batch(self, partition: str) -> None:
        """Submit the batch job."""
        batch = self.found.batch
        batch.directory = self.directory
        if not self.directory:
            batch.error = f"not run: {self.found.share_error}"
            return
        script = f'#!/bin/sh\necho "{self.found.nonce} $SLURMD_NODENAME"\n'
        command = commands.sbatch(self.ask(f"{self.name}-batch", partition), self.directory)
        try:
            batch.job = self.slurm(*command, script=script).strip().split(";")[0]
            batch.state = "PENDING"
        except NoAnswerError as error:
            batch.error = str(error)

    def launch(self, kind: str, partition: str, nodes: list[str]) -> Step:
        """Start an srun of the probe or of the memory job."""
        nonce = self.found.nonce
        if kind == "host":
            limit = min(ANSWER, self.run_limit / 2)
            program = [probe.PROBE, nonce, self.directory, self.found.scratch, f"{limit:.1f}"]
        else:
            program = [probe.MEMORY, nonce, str(probe.USED_MIB)]
        name = f"{self.name}-{kind}-{len(self.steps)}"
        # Unnamed files: nothing to remove, and no pipe that could fill up.
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        command = commands.srun(self.ask(name, partition), nodes, [*PYTHON, *program])
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.env, cwd="/")
        step = Step(kind, name, nodes, process, out, err, time.monotonic(), self.give_up(nodes))
        self.steps.append(step)
        return step

    def give_up(self, nodes: list[str]) -> float:
        """Until when a step on these nodes may wait: longer if jobs of other users may block it."""
        now, known = time.monotonic(), bool(self.now)
        if known and not any(node in self.others for node in nodes):
            return min(now + self.run_limit / 2, self.end)
        return min(max(self.start_by, now + self.run_limit), self.end)

    def watch(self, steps: list[Step]) -> None:
        """Wait until these steps and the batch job have ended or timed out."""
        while True:
            going = [step for step in steps if step.going]
            if not going and not self.batch_goes():
                return
            jobs = {job.name: job for job in self.queue()}
            self.note_batch(jobs.get(f"{self.name}-batch"))
            now = time.monotonic()
            for step in going:
                self.note_step(step, jobs.get(step.name), now)
            stop([step for step in going if step.running and now > step.running + self.run_limit], "ran")
            stop([step for step in going if not step.running and now > step.start_by], "waited")
            if now > max(step.start_by for step in steps) and all(not step.going for step in steps):
                return
            if now > self.end:
                stop(going, "ran")
                return
            time.sleep(PAUSE)

    def note_step(self, step: Step, job: Job | None, now: float) -> None:
        """Record squeue's output for a step."""
        if job and job.state == "PENDING":
            self.waiting_for[step.name] = job.reason
        elif job and job.state != "CONFIGURING" and not step.running:
            step.running = now

    def batch_goes(self) -> bool:
        """Whether the batch job was submitted and has not ended."""
        return self.found.batch.state in {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"}

    def note_batch(self, job: Job | None) -> None:
        """Record squeue's output for the batch job; slurmctld may forget it as soon as it ends (MinJobAge)."""
        batch = self.found.batch
        if not batch.job:
            return
        if job is None:
            batch.state = ""
        else:
            batch.state, batch.node, batch.reason = job.state, compress(job.nodes) or batch.node, job.reason

    def collect(self, steps: list[Step]) -> None:
        """Collect the answers of ended steps, and record why a node gave none."""
        found = self.found
        states = {job.name: job.state for job in self.queue()}
        for step in steps:
            probe.merge(found.answers, probe.read_answers(step.read(step.out), found.nonce))
        silent = [node for step in steps for node in probe.silent(found.answers, "host", step.nodes)]
        if silent:
            self.now, self.others = self.look(), self.jobs_of_others(silent)
        for step in steps:
            said = step.read(step.err)
            if step.kind == "memory" and ("Out Of Memory" in said or states.get(step.name) == "OUT_OF_MEMORY"):
                found.reported.update(step.nodes)
            for node in probe.silent(found.answers, "host", step.nodes) if step.kind == "host" else []:
                found.untested[node] = self.explain(step, node, said)

    def explain(self, step: Step, node: str, said: str) -> Problem:
        """Why this node did not answer this step."""
        if step.stopped == "waited":
            # If a node has just failed another job, that failure says more than this job's waiting.
            if node in self.found.untested and node not in self.others:
                return self.found.untested[node]
            sick = causes.node_problem(self.now.get(node), self.found.user)
            if sick:
                return sick
            seconds = time.monotonic() - step.launched
            reason, jobs = self.waiting_for.get(step.name, ""), self.others.get(node, {})
            return causes.waited(self.now.get(node), reason, jobs, seconds)
        error = commands.complaint(said, node)
        if step.stopped == "ran" and not error:
            error = f"no answer within {self.run_limit:.0f} s of the start of the job"
        return causes.failed_start(error)

    def jobs_of_others(self, nodes: list[str]) -> dict[str, dict[str, str]]:
        """Node → number → owner of the jobs that occupy it, as far as this user may see them."""
        others: dict[str, dict[str, str]] = {}
        for job in self.squeue("--states=RUNNING,COMPLETING,SUSPENDED", f"--nodelist={compress(nodes)}"):
            if not job.name.startswith(self.name):
                for node in job.nodes:
                    others.setdefault(node, {})[job.number] = job.user
        return others

    def rounds(self) -> Iterator[list[Step]]:
        """Sruns on all usable nodes; then smaller ones on nodes without an answer, to find each failing node."""
        found, width = self.found, 1
        usable = [name for name in found.workers if not causes.node_problem(found.nodes.get(name), found.user)]
        if usable:
            self.submit_batch(commands.cover(found.nodes, usable)[0][0])
        else:
            found.batch.error = "not run: no worker is usable"
        nodes, todo = found.nodes, {"host": usable, "memory": usable}
        while any(todo.values()) and time.monotonic() < self.end:
            steps = [
                self.launch(kind, partition, group)
                for kind, names in todo.items()
                for partition, members in commands.cover(nodes, names)
                for group in commands.groups(members, width)
            ]
            yield steps
            if all(len(step.nodes) == 1 for step in steps):
                return
            width = GROUPS
            again = list(filter(self.worth_another_try, usable))
            todo = {kind: probe.silent(found.answers, kind, again) for kind in todo}

    def worth_another_try(self, name: str) -> bool:
        """Whether a node can still run jobs and has room, not counting what this test's own jobs occupy."""
        node = self.now.get(name, self.found.nodes[name])
        return causes.node_problem(node, self.found.user) is None and bool(node.idle_cpus or name not in self.others)

    def read_back(self) -> None:
        """Read on control the files that the workers wrote to the share; NFS may show them with a delay."""
        wrote = {node for node, parts in self.found.answers.items() if parts.get("share", {}).get("wrote")}

        until = min(time.monotonic() + CLEAN_UP, self.end)
        while True:
            try:
                texts = bounded(lambda: share.read(self.directory), self.patience(), self.found.share)
            except NoAnswerError as error:
                self.found.share_error = str(error)
                return
            self.found.batch.output = texts.pop("batch.out", None)
            self.found.read_back = texts
            promised = self.found.batch.job and self.found.batch.state in {"", "COMPLETED", "COMPLETING"}
            all_here = wrote <= texts.keys() and (self.found.batch.output or not promised)
            if all_here or time.monotonic() > until:
                return
            time.sleep(PAUSE)

    def decode(self) -> None:
        """Decode the credentials of the workers."""

        def status(credential: str) -> str:
            if time.monotonic() > self.end:
                return "not decoded in time"
            try:
                self.slurm("unmunge", "--output=/dev/null", script=credential)
            except NoAnswerError as error:
                return str(error).removeprefix("unmunge: ").removeprefix("Error: ")
            return "Success (0)"

        made = {node: parts["munge"]["made"] for node, parts in self.found.answers.items() if "munge" in parts}
        with ThreadPoolExecutor(8) as pool:
            self.found.decoded = dict(zip(made, pool.map(status, made.values()), strict=True))

    def checks(self) -> list[Check]:
        """Run the test."""
        self.credential()
        try:
            self.found.nodes = self.look()
            self.make_directory()
            for steps in self.rounds():
                self.watch(steps)
                self.collect(steps)
        except NoAnswerError as error:
            self.lost = True
            return verdicts.not_run(str(error), self.found.control, self.found.munge_error)
        if self.directory:
            self.read_back()
        self.decode()
        return verdicts.verdict(self.found)


@contextlib.contextmanager
def signals_end_it() -> Iterator[None]:
    """Turn signals into an exception during the block, so that it cleans up."""

    def handle(number: int, _: Any) -> None:
        # Only the first signal counts: no other may interrupt the removal of jobs and files.
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise EndedError(f"ended by {signal.Signals(number).name}")

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    # An accelerator such as mitogen may run modules outside the main thread, where handlers cannot be set.
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handle) for number in numbers if main}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "workers": {"type": "list", "elements": "str", "required": True},
            "control": {"type": "str", "required": True},
            "share": {"type": "path", "required": True},
            "scratch": {"type": "path", "required": True},
            "deadline": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    if not module.params["workers"]:
        module.fail_json(msg="workers: expected names of nodes, seen an empty list; add a worker to the inventory.")
    if module.params["deadline"] < 20:
        module.fail_json(msg=f"deadline: expected at least 20 seconds, seen {module.params['deadline']}; raise it.")
    if os.getuid() == 0:
        module.fail_json(
            msg="expected an ordinary user, seen root, whose jobs prove nothing about the users'; set smoke_test_user."
        )
    found = Findings(
        workers=list(dict.fromkeys(module.params["workers"])),
        control=module.params["control"],
        user=pwd.getpwuid(os.getuid()).pw_name,
        share=module.params["share"],
        scratch=module.params["scratch"],
        nonce=secrets.token_hex(4),
    )
    try:
        with signals_end_it(), Run(found, module.params["deadline"]) as run:
            checks = run.checks()
    except EndedError as error:
        module.fail_json(msg=f"the smoke test was {error} before it had a result; its jobs and files are removed.")
    module.exit_json(
        changed=False,
        ok=all(check.ok for check in checks),
        checks=[check._asdict() for check in checks],
        lines=[check.line() for check in checks],
    )


if __name__ == "__main__":
    main()
