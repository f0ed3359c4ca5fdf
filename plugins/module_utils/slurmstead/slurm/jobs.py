# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The jobs of a cluster, as squeue shows them, and the effects of a change on them. Formats: squeue(1)."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ansible.module_utils.slurmstead.slurm.hostlist import compress, expand

FORMAT = "--format=%A|%T|%P|%N|%i|%r|%u"
"""A line for each job, without text of users. `%A` is its number from start to end, also in an array."""

NAMED = f"{FORMAT}|%j"
"""The same with its name, which may contain a line break, and so lines that look like those of other jobs."""

SQUEUE = ("squeue", "--all", "--states=all", "--noheader", FORMAT)
"""All jobs, including those of other users and ended ones."""

HOLDS_NODES = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "COMPLETING", "SIGNALING", "STAGE_OUT"})
"""States of jobs that are on their nodes (squeue(1), JOB STATE CODES)."""

WAITS = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT", "RESIZING"})
"""States of jobs that will start."""

ENDED = frozenset(
    {
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
    }
)
"""Job states (squeue(1), JOB STATE CODES) after which nothing more happens."""

KILLED_BY = frozenset({"NodeDown", "PartitionDown", "NodeFail", "BootFail"})
"""Reasons of jobs that ended or were requeued because slurmctld had lost information."""

GIVEN_UP = re.compile(
    r"equeue (?:job |het job leader )?JobId=(?:\d+[_+]\d+\()?(\d+)\)? due to (?:failure of node|node failure)"
)
"""What slurmctld logs when it requeues a job because its node or its processes are gone (job_mgr.c, read_config.c).

Only this tells such a job from one that was preempted or requeued by `scontrol`: in 22.05 and 24.11 all of them are
PENDING with the reason BeginTime, and have one restart more.
"""


@dataclass(frozen=True)
class Job:
    """A job; `nodes` are those that it is on.

    `task` is the argument for scancel, `20_3` in an array. slurmctld 22.05 finds no task by its job number; the task
    that starts last has the array's own number, which would cancel all tasks (job_str_signal in job_mgr.c).
    """

    number: str
    state: str
    partition: str = ""
    nodes: tuple[str, ...] = ()
    reason: str = ""
    task: str = ""
    user: str = ""
    name: str = ""
    image: bool = False
    """Whether it has an image (`--container`), as far as `find_images` was asked."""

    @property
    def running(self) -> bool:
        """Whether it is on its nodes."""
        return self.state in HOLDS_NODES

    @property
    def pending(self) -> bool:
        """Whether it will start."""
        return self.state in WAITS


@dataclass(frozen=True)
class State:
    """The jobs that run and wait at one moment; `heard` says whether a controller answered."""

    jobs: tuple[Job, ...] = ()
    heard: bool = True

    def on(self, node: str) -> tuple[Job, ...]:
        """Return the jobs that are on a node."""
        return tuple(job for job in self.jobs if job.running and node in job.nodes)

    @property
    def running(self) -> tuple[Job, ...]:
        """The jobs that are on nodes."""
        return tuple(job for job in self.jobs if job.running)

    @property
    def live(self) -> tuple[Job, ...]:
        """The jobs that run or wait."""
        return tuple(job for job in self.jobs if job.running or job.pending)

    @property
    def busy(self) -> frozenset[str]:
        """The nodes with jobs."""
        return frozenset(node for job in self.running for node in job.nodes)


def read_queue(text: str) -> State:
    """Return the state from the output of squeue in FORMAT or NAMED; other lines are ignored, as those of libraries.

    >>> read_queue("7|RUNNING|main|n[1-2]|7|None|alice|a|b").jobs[0].name
    'a|b'
    """
    jobs = []
    for line in text.splitlines():
        fields = [*line.strip().split("|", 7), ""][:8]
        if len(fields) == 8 and fields[0].isdigit():
            number, state, partition, nodes, task, reason, user, name = fields
            # A line that a name contains need not have a host list.
            with contextlib.suppress(ValueError):
                on = tuple(expand(nodes)) if nodes else ()
                jobs.append(Job(number, state, partition, on, reason, task, user, name))
    return State(tuple(jobs))


def find_images(state: State, shown: str | None) -> State:
    """Return the same jobs, and which of them have images.

    :param shown: the output of `scontrol --oneliner show job`; without it, each of them may have one

    >>> shown = "JobId=7 JobName=a\\nb Container=/share/images/r\\nJobId=8 JobName=c"
    >>> [job.image for job in find_images(State((Job("7", "PENDING"), Job("8", "PENDING"))), shown).jobs]
    [True, False]
    """
    # A name may contain a line break.
    records = re.split(r"^JobId=", shown or "", flags=re.MULTILINE)
    contained = {record.split()[0] for record in records if " Container=" in record}
    jobs = (dataclasses.replace(job, image=shown is None or job.number in contained) for job in state.jobs)
    return dataclasses.replace(state, jobs=tuple(jobs))


def in_words(jobs: Iterable[Job], most: int = 5) -> str:
    """Return jobs as text for a message.

    >>> in_words([Job("7", "RUNNING", "main", ("n1",)), Job("8", "PENDING", "main")])
    'job 7 (running on n1) and job 8 (pending)'
    """
    listed = sorted(jobs, key=lambda job: int(job.number))
    words = [
        f"job {job.number} ({job.state.lower()}{f' on {compress(job.nodes)}' if job.nodes else ''})"
        for job in listed[:most]
    ]
    if len(listed) > most:
        words.append(f"{len(listed) - most} more")
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def lost(
    before: Iterable[Job], after: Mapping[str, Job], ends_show: bool = True, log: Callable[[], str] | None = None
) -> list[tuple[Job, str]]:
    """Return the jobs that a change ended or lost, each with what happened to it.

    Jobs that ended by themselves or started do not count. `ends_show`: the queue still shows jobs that ended meanwhile
    (MinJobAge); otherwise a missing job may have ended. `log` returns slurmctld's log of the time between: a requeued
    job counts only if it is in GIVEN_UP there. Without `log`, each one counts.
    """
    found = []
    for job in before:
        now = after.get(job.number)
        if not (job.running or job.pending):
            continue
        if now is None:
            # Unless cancelled, a pending job cannot end within seconds without being seen running.
            if ends_show:
                found.append((job, "forgotten"))
        elif now.state in ("NODE_FAIL", "BOOT_FAIL"):
            found.append((job, f"ended as {now.state}"))
        elif job.running and now.pending and (log is None or job.number in GIVEN_UP.findall(log())):
            found.append((job, "removed from its nodes and requeued"))
        elif now.state == "COMPLETING" and now.reason in KILLED_BY and job.reason not in KILLED_BY:
            found.append((job, "killed"))
    return found


def by_number(state: State) -> dict[str, Job]:
    """Return the jobs of a state by their number."""
    return {job.number: job for job in state.jobs}
