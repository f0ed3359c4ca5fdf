# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Why a job waits: what it asks for, which nodes could run it, and what it waits for, in plain English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.answers import flags
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.hostlist import compress, expand
from ansible.module_utils.slurmstead.slurm.jobs import ENDED, HOLDS_NODES
from ansible.module_utils.slurmstead.slurm.requests import Request, counts, read_requests

NEVER, OUT, BUSY, FREE = "never", "out", "busy", "free"
"""What a node is for a job: it lacks something, gets no jobs, has no room now, or has room."""

OUT_OF_SERVICE = (
    "DOWN",
    "DRAIN",
    "FAIL",
    "NOT_RESPONDING",
    "INVAL",
    "UNKNOWN",
    "FUTURE",
    "REBOOT",
    "RESERVED",
    "MAINT",
)

SHOWN = 3
"""Maximum number of jobs that a line lists."""

QUEUE = ("squeue", "--all", "--noheader", "--array", "--states=PENDING,RUNNING,COMPLETING,SUSPENDED")
FORMAT = "--format=%A|%T|%P|%Q|%e|%u|%N"
"""Number, state, partition, priority, end time, user and nodes of each job."""

WHY = {
    "JobHeldUser": "It is held by its user. To let it start: `scontrol release {task}`.",
    "JobHeldAdmin": "It is held by an administrator. To let it start, as root: `scontrol release {task}`.",
    "launch_failed_requeued_held": "Its start failed, so it is held. See slurmd's log, then `scontrol release {task}`.",
    "job_requeued_in_held_state": "It was requeued and is held. To let it start: `scontrol release {task}`.",
    "Dependency": "It waits for other jobs: {dependency}.",
    "DependencyNeverSatisfied": "It can never start: its dependency {dependency} failed. Cancel it.",
    "BeginTime": "It may not start before {begins}.",
    "Reservation": "It waits for its reservation {reservation}.",
    "PartitionDown": "The partition {partition} is down. To open it: `scontrol update partition={partition} state=up`.",
    "PartitionInactive": "The partition {partition} is inactive: `scontrol update partition={partition} state=up`.",
    "PartitionTimeLimit": "Its time limit {limit} exceeds that of the partition {partition}. It can never start.",
    "PartitionNodeLimit": "The partition {partition} does not allow that many nodes. It can never start.",
    "JobArrayTaskLimit": "As many tasks of its array run as it allows at a time.",
    "Licenses": "It waits for a licence.",
}
"""What a reason of slurmctld means (squeue(1), JOB REASON CODES)."""

HOPELESS = ("DependencyNeverSatisfied", "PartitionTimeLimit", "PartitionNodeLimit")


@dataclass(frozen=True)
class Other:
    """Another job in the queue."""

    number: str
    state: str
    partition: str
    priority: int
    ends: str
    user: str
    nodes: tuple[str, ...]


Node = Mapping[str, str]
"""The fields of a node as Slurm.nodes() returns them."""


@dataclass(frozen=True)
class Explanation:
    """Sentences about a job, one line each; `hopeless` if it is unknown or can never run."""

    lines: tuple[str, ...]
    hopeless: bool = False


def look(number: str) -> dict[str, Any]:
    """Explain a job of the slurmctld of this machine. Returns the fields of an Explanation.

    :param number: the number of a job, or of a task of an array, such as 7 or 7_2
    """
    slurm = Slurm()
    code, out, err = run("scontrol", "--oneliner", "show", "job", number)
    jobs = read_requests(out)
    if not jobs:
        why = "" if "Invalid job id" in err else f": {(err or out).strip()}"
        return vars(unknown(number, why if code else ""))
    waiting = [job for job in jobs if job.state not in HOLDS_NODES | ENDED]
    # Of an array, the tasks that wait are one job.
    job = (waiting or jobs)[0]
    _, queue, _ = run(*QUEUE, FORMAT)
    _, start, _ = run("squeue", "--all", "--start", "--noheader", f"--jobs={job.number}", "--format=%S")
    return vars(explain(job, slurm.nodes(), read_others(queue), start.partition("\n")[0].strip()))


def unknown(number: str, why: str) -> Explanation:
    """Say that slurmctld does not know a job."""
    if why:
        return Explanation((f"slurmctld does not answer{why}",), hopeless=True)
    line = f"slurmctld knows no job {number}: it never existed, or ended more than some minutes ago (MinJobAge)."
    return Explanation((line,), hopeless=True)


def read_others(text: str) -> list[Other]:
    """Return the jobs in the output of squeue in FORMAT."""
    rows = (line.split("|") for line in text.splitlines())
    return [
        Other(row[0], row[1], row[2], int(row[3]), row[4], row[5], tuple(expand(row[6])) if row[6] else ())
        for row in rows
        if len(row) == 7 and row[0].isdigit()
    ]


def explain(job: Request, nodes: Mapping[str, Node], queue: Iterable[Other], start: str = "") -> Explanation:
    """Explain a job.

    :param start: when slurmctld expects to start it, if it says so
    """
    if job.state in ENDED:
        return Explanation((f"Job {job.task} has ended: {job.state} at {job.ended}, exit code {job.exit_code}.",))
    if job.state in HOLDS_NODES:
        return Explanation((f"Job {job.task} is {job.state} on {job.on} since {job.started}.",))
    kinds = {name: suits(job, node) for name, node in nodes.items()}
    impossible = _impossible(job, nodes, kinds)
    lines = [f"Job {job.task} of {job.user} asks for {_asks(job)}."]
    words = {"task": job.task.partition("_")[0], "partition": ",".join(job.partitions)}
    policy = WHY.get(job.reason, "")
    if policy:
        lines.append(policy.format(**{**vars(job), **words}))
    elif job.reason.startswith(("QOS", "Assoc", "MaxJobs")):
        lines.append(f"A limit of its account or QOS is reached ({job.reason}).")
    elif job.reason not in ("", "Priority", "Resources"):
        lines.append(f"slurmctld gives the reason {job.reason}.")
    lines += _groups(kinds)
    if impossible:
        lines.append(f"It can never run: {impossible}. Change its request, or cancel it.")
    elif not policy:
        lines += _waits(job, kinds, list(queue))
        lines += [f"slurmctld expects to start it at {start}."] if start and start != "N/A" else []
    return Explanation(tuple(lines), bool(impossible) or job.reason in HOPELESS)


def _asks(job: Request) -> str:
    memory = f"{job.memory_per_node} MiB per node" if job.memory_per_node else f"{job.memory_per_cpu} MiB per CPU"
    nodes = f"{job.nodes} node{'s' if job.nodes > 1 else ''}"
    words = [
        f"{job.cpus} CPU{'s' if job.cpus > 1 else ''} on {nodes if job.most_nodes else f'at least {nodes}'}",
        memory if job.memory_per_node or job.memory_per_cpu else "all memory of its nodes",
        *(f"{number} {name} per node" for name, number in job.gres.items()),
        *([f"the features {job.features}"] if job.features else []),
        *([f"the nodes {compress(job.required)}"] if job.required else []),
        *([f"not the nodes {compress(job.excluded)}"] if job.excluded else []),
        f"the time {job.limit}" if job.limit and job.limit != "UNLIMITED" else "no time limit",
    ]
    return f"{', '.join(words)}, in the partition {' or '.join(job.partitions)}"


def suits(job: Request, node: Node) -> tuple[str, str]:
    """Return what a node is for a job, one of NEVER, OUT, BUSY and FREE, and why."""
    total = int(node.get("CPUEfctv") or node.get("CPUTot") or 0)
    memory = int(node.get("RealMemory") or 0)
    name = node.get("NodeName", "")
    if not set(job.partitions) & set(node.get("Partitions", "").split(",")):
        return NEVER, f"not in the partition {' or '.join(job.partitions)}"
    if name in job.excluded or (job.required and name not in job.required and job.most_nodes == len(job.required)):
        return NEVER, "not among the nodes that it asks for"
    if total < job.cpus_here:
        return NEVER, f"only {total} CPU{'s' if total > 1 else ''}"
    if memory < job.memory_here:
        return NEVER, f"only {memory} MiB of memory"
    if missing := _missing(job.features, node.get("ActiveFeatures", "")):
        return NEVER, f"without the feature {missing}"
    there = counts("" if node.get("Gres") == "(null)" else node.get("Gres", ""))
    for gres, number in job.gres.items():
        if sum(count for have, count in there.items() if have == gres or have.startswith(f"{gres}:")) < number:
            return NEVER, f"without {number} {gres}"
    states = flags(node)
    if any(word.startswith(OUT_OF_SERVICE) for word in states):
        return OUT, f"{node['State'].lower()}{': ' + node['Reason'] if node.get('Reason') else ''}"
    idle = total - int(node.get("CPUAlloc") or 0)
    spare = memory - int(node.get("AllocMem") or 0)
    if idle < job.cpus_here or spare < (job.memory_here or 0):
        return BUSY, f"{idle} of {total} CPUs and {spare} of {memory} MiB are free"
    if not job.memory_here and spare < memory and not job.memory_per_cpu:
        return BUSY, f"it asks for all memory, {spare} of {memory} MiB are free"
    return FREE, "has room"


def _missing(wanted: str, there: str) -> str:
    """Return a feature that a node lacks; of alternatives, and of expressions that are not understood, none.

    >>> _missing("big&arm64", "arm64,rk3588"), _missing("big|arm64", "arm64"), _missing("big*2", "")
    ('big', '', '')
    """
    names = re.split(r"[&,]", wanted)
    if not wanted or any(not re.fullmatch(r"[\w.-]+", name) for name in names):
        return ""
    return next((name for name in names if name not in there.split(",")), "")


def _groups(kinds: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return a line for each group of nodes that are the same for the job."""
    titles = {FREE: "Could run it now", BUSY: "Busy", OUT: "Out of service", NEVER: "Cannot run it"}
    lines = []
    for kind, title in titles.items():
        groups: dict[str, list[str]] = {}
        for name, (found, why) in kinds.items():
            if found == kind:
                groups.setdefault(why, []).append(name)
        lines += [f"{title}: {compress(names)} ({why})" for why, names in groups.items()]
    return lines


def _impossible(job: Request, nodes: Mapping[str, Node], kinds: Mapping[str, tuple[str, str]]) -> str:
    """Return why no set of nodes can ever run a job; empty if one can."""
    able = [name for name, (kind, _) in kinds.items() if kind != NEVER]
    if not able:
        return "no node has what it asks for"
    if len(able) < job.nodes:
        return f"it asks for {job.nodes} nodes, and only {len(able)} have what it asks for"
    cpus = sorted((int(nodes[name].get("CPUEfctv") or nodes[name].get("CPUTot") or 0) for name in able), reverse=True)
    if sum(cpus[: job.most_nodes]) < job.cpus:
        return f"it asks for {job.cpus} CPUs, and these nodes have {sum(cpus[: job.most_nodes])}"
    return ""


def _waits(job: Request, kinds: Mapping[str, tuple[str, str]], queue: list[Other]) -> list[str]:
    """Return which jobs are ahead of a job, and which end before it can start."""
    lines = []
    ahead = [
        other
        for other in queue
        if other.state == "PENDING"
        and other.number != job.number
        and other.partition in job.partitions
        and (other.priority, -int(other.number)) > (job.priority, -int(job.number))
    ]
    if ahead and job.reason != "Resources":
        ahead.sort(key=lambda other: (-other.priority, int(other.number)))
        lines.append(f"Ahead of it: {_named(ahead)}.")
    busy = {name for name, (kind, _) in kinds.items() if kind == BUSY}
    ends = [other for other in queue if other.state != "PENDING" and busy & set(other.nodes)]
    # A job without a limit ends last: N/A sorts behind any year.
    for other in sorted(ends, key=lambda other: other.ends)[:SHOWN]:
        when = f"by {other.ends}" if other.ends[:1].isdigit() else "at an unknown time, because it has no time limit"
        lines.append(
            f"{compress(busy & set(other.nodes))} gets room when job {other.number} of {other.user} ends, {when}."
        )
    return lines


def _named(jobs: list[Other]) -> str:
    more = f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
    return ", ".join(f"job {job.number} of {job.user}" for job in jobs[:SHOWN]) + more
