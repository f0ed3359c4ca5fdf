"""The verdicts of the smoke test: what was expected, what was seen, and what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.nodes import Node
from ansible.module_utils.slurmstead.smoke.probe import ASKED_MIB, USED_MIB, Answers

CHECKS = ("nodes", "srun", "sbatch", "one-cpu", "memory-limit", "share", "scratch", "munge")

REMOTE = re.compile(
    r"nfs\d?|cifs|smb3?|9p|virtiofs|afs|ceph|lustre|gpfs|beegfs|glusterfs|fuse\.\w*(ssh|gluster|ceph)\w*"
)
"""File system types (/proc/self/mountinfo) whose data is on another machine."""

FOREIGN_KEY = re.compile(r"authenticat|credential|munge|zero bytes", re.IGNORECASE)
"""What srun says of a node with another key or clock. Slurm 22.05 says no more than `Zero Bytes were transmitted or
received`, because a slurmd that cannot read a message closes the connection."""

DEAF = "does not answer"

SHOWN = 3
"""Different findings that one line names; the rest is counted."""

_HINTS = {
    "missing": "add it to the workers of the inventory and configure Slurm; then `scontrol show node {node}`",
    "down": "on {node}: `systemctl status slurmd`; then `scontrol update nodename={node} state=resume`",
    "drain": "remove the cause; then `scontrol update nodename={node} state=resume`",
    "inval": "it has less than slurm.conf says: on {node} `slurmd -C`, compare `scontrol show node {node}`",
    "silent": "on {node}: `systemctl status slurmd munge`, `journalctl -u slurmd -n 20`; is it switched on?",
    "reserved": "`scontrol show reservation`",
    "reboot": "wait until {node} is back; `scontrol show node {node}`",
    "first": "make the checks nodes and srun green first",
    "munge": "compare `sha256sum /etc/munge/munge.key` and `date` on {node} and control; restart munge, slurmd",
}


class Problem(NamedTuple):
    """What was seen where something else was expected, and what to do; `{node}` in the hint stands for the place."""

    seen: str
    hint: str


class Check(NamedTuple):
    """One line of the result."""

    name: str
    ok: bool
    expected: str
    seen: str
    hint: str

    def line(self) -> str:
        """The check as a person reads it.

        >>> Check("nodes", True, "3 workers known and usable", "3 idle", "").line()
        'ok    nodes: 3 idle'
        """
        if self.ok:
            return f"ok    {self.name}: {self.seen}"
        return f"FAIL  {self.name}: expected {self.expected}; seen {self.seen}; do: {self.hint}"


@dataclass
class Batch:
    """What became of the batch job."""

    error: str = ""
    """Why it was not submitted."""
    job: str = ""
    state: str = ""
    """Last state in squeue; empty when the job has left the queue."""
    node: str = ""
    reason: str = ""
    output: str | None = None
    """What control read from its output on the share; None: no such file."""
    directory: str = ""


@dataclass
class Findings:
    """Everything that was seen."""

    workers: Sequence[str]
    control: str
    user: str
    share: str
    scratch: str
    nodes: dict[str, Node] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)
    untested: dict[str, Problem] = field(default_factory=dict)
    """Node → why no job answered from it."""
    reported: set[str] = field(default_factory=set)
    """Nodes of a job that Slurm reported as out of memory."""
    batch: Batch = field(default_factory=Batch)
    nonce: str = ""
    share_error: str = ""
    """Why control could not use the share."""
    read_back: dict[str, str] = field(default_factory=dict)
    """Node → what control read from the file that this node wrote to the share."""
    munge_error: str = ""
    """Why control could not make and read a credential."""
    decoded: dict[str, str] = field(default_factory=dict)
    """Node → the status of its credential on control."""


def verdict(found: Findings) -> list[Check]:
    """All checks, in the order of CHECKS."""
    return [
        check_nodes(found),
        check_srun(found),
        check_sbatch(found),
        check_cpu(found),
        check_memory(found),
        check_share(found),
        check_scratch(found),
        check_munge(found),
    ]


def not_run(error: str, control: str, munge_error: str = "") -> list[Check]:
    """All checks red, because slurmctld did not answer; a munge that is broken on control is named as the cause."""
    hint = f"on {control}: `systemctl status slurmctld munge`, `journalctl -u slurmctld -n 20`"
    checks = [Check("nodes", False, "an answer from slurmctld", error, hint)]
    checks += [Check(name, False, "a run", "not run: slurmctld does not answer", hint) for name in CHECKS[1:]]
    if munge_error:
        hint = f"on {control}: `systemctl restart munge`, `journalctl -u munge -n 20`"
        checks[-1] = Check("munge", False, f"a credential made and read on {control}", munge_error, hint)
    return checks


def summarise(problems: Mapping[str, Problem]) -> tuple[str, str]:
    """One line for what was seen and one for what to do; nodes with the same finding share a place.

    >>> summarise({"n1": Problem("off", "look at {node}"), "n2": Problem("off", "look at {node}")})
    ('n[1-2]: off', 'look at n1')
    """
    places: dict[str, list[str]] = {}
    hints: list[str] = []
    for node, problem in problems.items():
        places.setdefault(problem.seen, []).append(node)
        if len(places[problem.seen]) == 1:
            hints.append(problem.hint.replace("{node}", node))
    lines = [f"{compress(nodes)}: {seen}" for seen, nodes in places.items()]
    more = [f"and {len(lines) - SHOWN} more findings"] if len(lines) > SHOWN else []
    return "; ".join(lines[:SHOWN] + more), "; ".join(list(dict.fromkeys(hints))[:2])


def _check(name: str, expected: str, good: str, problems: Mapping[str, Problem], workers: Sequence[str]) -> Check:
    if not problems:
        return Check(name, True, expected, good, "")
    seen, hint = summarise(problems)
    fine = [worker for worker in workers if worker not in problems]
    return Check(name, False, expected, f"{compress(fine)}: good; {seen}" if fine else seen, hint)


def _each(found: Findings, part: str, judge: Callable[[str, dict[str, Any]], Problem | None]) -> dict[str, Problem]:
    """Judge the answers of all workers to one part; one without an answer is a problem of its own."""
    problems: dict[str, Problem] = {}
    for node in found.workers:
        answers = found.answers.get(node, {})
        if part in answers:
            problem = judge(node, answers[part])
        elif "host" in answers:
            problem = Problem("its probe gave no answer in time", f"on {{node}}: is {part} stuck? `dmesg | tail`")
        else:
            problem = Problem("not tested, no job answered", _HINTS["first"])
        if problem:
            problems[node] = problem
    return problems


def node_problem(node: Node | None, user: str) -> Problem | None:
    """Why this node cannot run a job of the user; None when it can."""
    if node is None:
        return Problem(f"not known to Slurm, or in no partition that {user} may use", _HINTS["missing"])
    if node.usable:
        return None if node.partitions else Problem("its partitions are not up", "`scontrol show partition`")
    why = f": {node.reason}" if node.reason else ""
    since = f" (by {node.by} since {node.since})" if node.reason and node.by else ""
    if "*" in node.flags and not node.state.startswith("drain"):
        hint = _HINTS["silent"]
    elif "$" in node.flags or node.state in {"reserved", "maint"}:
        hint = _HINTS["reserved"]
    else:
        words = ("drain", "inval", "reboot")
        hint = next((_HINTS[word] for word in words if node.state.startswith(word)), _HINTS["down"])
    silent = f", {DEAF}" if "*" in node.flags else ""
    return Problem(f"{node.state}{silent}{why}{since}", hint)


def check_nodes(found: Findings) -> Check:
    """Slurm knows every worker and can use it."""
    judged = {name: node_problem(found.nodes.get(name), found.user) for name in found.workers}
    problems = {name: problem for name, problem in judged.items() if problem}
    states = Counter(found.nodes[name].state for name in found.workers if name in found.nodes)
    good = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    return _check("nodes", f"{_workers(found)} known and usable", good, problems, found.workers)


def check_srun(found: Findings) -> Check:
    """One srun on all workers answers with as many host names."""
    names: dict[str, str] = {}
    problems: dict[str, Problem] = {}
    for node in found.workers:
        host = found.answers.get(node, {}).get("host", {}).get("host")
        if host is None:
            sick = node_problem(found.nodes.get(node), found.user)
            not_tried = Problem(f"not tried, {sick.seen.split(':')[0]}", sick.hint) if sick else None
            problems[node] = not_tried or found.untested.get(node, Problem("no answer", _HINTS["silent"]))
        elif host in names:
            hint = "on {node}: `hostnamectl hostname {node}`, then restart slurmd"
            problems[node] = Problem(f"calls itself {host}, as {names[host]} does", hint)
        names.setdefault(host or "", node)
    answered = compress(name for name in names if name)
    return _check("srun", f"{len(found.workers)} distinct host names", answered, problems, found.workers)


def check_sbatch(found: Findings) -> Check:
    """A batch job ran, its output is on the share, and the queue has forgotten it."""
    batch, expected = found.batch, "a job ends, its output is on the share, and it leaves the queue"
    where = f"job {batch.job}" + (f" on {batch.node}" if batch.node else "")
    problem: Problem | None = None
    if not batch.job:
        problem = Problem(batch.error or "not submitted", "`sbatch --test-only`, `scontrol show partition`")
    elif batch.state in {"PENDING", "CONFIGURING", "RUNNING"}:
        why = f" ({batch.reason})" if batch.reason not in {"", "None"} else ""
        problem = Problem(f"{where} is still {batch.state.lower()}{why}", "`squeue`; raise smoke_test_deadline")
    elif batch.state not in {"", "COMPLETED", "COMPLETING"}:
        hint = f"on {batch.node or 'its node'}: `findmnt {found.share}`, `journalctl -u slurmd`"
        problem = Problem(f"{where} ended as {batch.state.lower()} ({batch.reason})", hint)
    elif batch.output is None or found.nonce not in batch.output:
        what = "nothing" if batch.output is None else "something else"
        hint = f"on {batch.node or 'its node'} and {found.control}: `findmnt {found.share}`"
        problem = Problem(f"{where} ended, but {what} is in {batch.directory}/batch.out", hint)
    elif batch.state == "COMPLETING":
        problem = Problem(
            f"{where} does not leave the queue", f"on {batch.node}: is Epilog stuck? `journalctl -u slurmd`"
        )
    if problem:
        return Check("sbatch", False, expected, problem.seen, problem.hint)
    return Check("sbatch", True, expected, f"{where}, output read on {found.control}, queue empty", "")


def check_cpu(found: Findings) -> Check:
    """A job that asked for one CPU can use one: one core with its hardware threads, which Slurm does not divide."""

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        if "error" in seen:
            return Problem(seen["error"], "on {node}: `journalctl -u slurmd`")
        if seen["usable"] <= seen["core"]:
            return None
        if seen["bound"] > seen["core"]:
            hint = "SelectType=select/cons_tres, TaskPlugin=task/cgroup,task/affinity and ConstrainCores=yes"
            return Problem(f"a job sees {seen['bound']} of {seen['online']} CPUs", hint + "; restart slurmd on {node}")
        hint = "ConstrainCores=yes in cgroup.conf, TaskPlugin with task/cgroup; restart slurmd on {node}"
        return Problem(f"a job is bound to {seen['bound']} CPU but can take {seen['usable']}", hint)

    problems = _each(found, "cpu", judge)
    return _check(
        "one-cpu", "one CPU asked is one CPU seen", f"1 on each of {_workers(found)}", problems, found.workers
    )


def check_memory(found: Findings) -> Check:
    """The kernel ends a job that uses more than it asked for, and Slurm says so."""

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        ended = seen.get("ended", "")
        if ended == "survived":
            hint = (
                "ConstrainRAMSpace=yes and ConstrainSwapSpace=yes in cgroup.conf, SelectTypeParameters=CR_Core_Memory"
            )
            kernel = "; on {node}: memory in /sys/fs/cgroup/cgroup.controllers? restart slurmd"
            return Problem(f"a job that asked for {ASKED_MIB} MiB used {USED_MIB} MiB", hint + kernel)
        if ended == "refused":
            return Problem(
                "a limit of the shell ended the job, not the kernel's",
                "on {node}: `ulimit -v`, PropagateResourceLimits",
            )
        if node not in found.reported:
            return Problem(
                "the job was killed, but not reported as out of memory", "on {node}: `journalctl -u slurmd`, `dmesg`"
            )
        return None

    expected = f"a job that asked for {ASKED_MIB} MiB and uses {USED_MIB} MiB is killed and reported"
    return _check(
        "memory-limit", expected, f"OUT_OF_MEMORY on {_workers(found)}", _each(found, "memory", judge), found.workers
    )


def check_share(found: Findings) -> Check:
    """What control writes every worker reads, and the other way round."""
    expected = f"{found.share} has the same content on {found.control} and {_workers(found)}"
    if found.share_error:
        hint = f"on {found.control}: `findmnt {found.share}`, `systemctl status nfs-server`"
        return Check("share", False, expected, f"{found.control}: {found.share_error}", hint)

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        where = f" ({seen.get('type', '?')} on {seen.get('source', '?')})"
        if "error" in seen:
            return Problem(
                f"{seen['error']}{where}", f"on {{node}}: `findmnt {found.share}`, `systemctl restart remote-fs.target`"
            )
        if seen["read"] != found.nonce:
            return Problem(
                f"reads other content than {found.control} wrote{where}", f"on {{node}}: `findmnt {found.share}`"
            )
        if found.read_back.get(node) != seen.get("wrote"):
            return Problem(
                f"{found.control} does not see what it writes{where}", f"on {{node}}: `findmnt {found.share}`"
            )
        return None

    types = sorted({str(parts["share"].get("type")) for parts in found.answers.values() if "share" in parts})
    good = f"{len(found.workers)} read, {len(found.read_back)} written back ({', '.join(types)})"
    return _check("share", expected, good, _each(found, "share", judge), found.workers)


def check_scratch(found: Findings) -> Check:
    """$SCRATCH is a directory below the scratch path, writable, on the node's own disk."""

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        where = f"{seen.get('given') or found.scratch} ({seen.get('type', '?')} on {seen.get('source', '?')})"
        if REMOTE.fullmatch(str(seen.get("type", ""))) or seen.get("shared"):
            return Problem(f"{where} is not local to the node", f"on {{node}}: `findmnt {found.scratch}`")
        if not seen.get("given"):
            hint = f"on {{node}}: `findmnt {found.scratch}`, `df {found.scratch}`; TaskProlog in slurm.conf"
            return Problem("$SCRATCH is not set in a job", hint)
        if "error" in seen:
            hint = f"on {{node}}: `ls -ld {found.scratch}`, `df {found.scratch}`"
            return Problem(f"cannot write to {where}: {seen['error']}", hint)
        if not seen["inside"]:
            return Problem(f"$SCRATCH is {where}, not below {found.scratch}", "TaskProlog in slurm.conf")
        return None

    types = sorted({str(parts["scratch"].get("type")) for parts in found.answers.values() if "scratch" in parts})
    good = f"written on {_workers(found)} ({', '.join(types)})"
    return _check(
        "scratch",
        f"$SCRATCH is writable, local and below {found.scratch}",
        good,
        _each(found, "scratch", judge),
        found.workers,
    )


def check_munge(found: Findings) -> Check:
    """A credential of control is valid on every worker, and the other way round."""
    expected = f"credentials of {found.control} valid on {_workers(found)}, and theirs on {found.control}"
    if found.munge_error:
        hint = f"on {found.control}: `systemctl restart munge`, `journalctl -u munge -n 20`"
        return Check("munge", False, expected, f"{found.control}: {found.munge_error}", hint)

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        if "error" in seen or seen.get("failed"):
            return Problem(seen.get("error") or seen["failed"], "on {node}: `systemctl restart munge`")
        if not valid(seen["read"]):
            return Problem(f"reads {found.control}'s credential as: {seen['read']}", _munge_hint(seen["read"]))
        status = found.decoded.get(node, "not read")
        if not valid(status):
            return Problem(f"{found.control} reads its credential as: {status}", _munge_hint(status))
        return None

    problems = _each(found, "munge", judge)
    for node in problems:
        # A slurmd that cannot read slurmctld's messages does not answer, so the probe cannot say why.
        text = found.untested[node].seen if node in found.untested else ""
        if FOREIGN_KEY.search(text) or DEAF in text:
            problems[node] = Problem(f"not tested: {text}", _HINTS["munge"])
    return _check("munge", expected, f"{len(found.decoded)} round trips", problems, found.workers)


def valid(status: str) -> bool:
    """Whether unmunge's status proves a shared key and clock.

    A replayed credential does: it was accepted once before by the same munged, as when a node has two slurmds.

    >>> valid("Success (0)"), valid("Replayed credential (17)"), valid("Invalid credential (12)")
    (True, True, False)
    """
    return status.startswith(("Success", "Replayed"))


def _munge_hint(status: str) -> str:
    if status.startswith(("Expired", "Rewound")):
        return "the clocks differ by minutes: `chronyc tracking` on {node} and control"
    return _HINTS["munge"]


def waited(node: Node | None, reason: str, jobs: Mapping[str, str], seconds: float) -> Problem:
    """A node on which a job of the test did not start in time.

    `reason`: squeue's. `jobs`: number → owner of the jobs of others on that node.
    """
    if node and (node.state.startswith("power") or set(node.flags) & set("~#%!")):
        hint = "wait until {node} is up, or raise smoke_test_deadline"
        return Problem(f"saves power, not up within {seconds:.0f} s", hint)
    text = ", ".join(f"job {number} of {owner}" for number, owner in list(jobs.items())[:SHOWN])
    who = f"{text} on it" if text else reason or "no reason given"
    hint = (
        "wait for these jobs, or raise smoke_test_deadline" if text else "`squeue --long`, `scontrol show node {node}`"
    )
    return Problem(f"no free CPU or memory within {seconds:.0f} s: {who}", hint)


def failed_start(error: str) -> Problem:
    """A node on which srun could not start a task."""
    if FOREIGN_KEY.search(error):
        return Problem(error, _HINTS["munge"])
    if error.startswith("Unable to allocate resources"):
        return Problem(
            error, "`srun --nodes=1 hostname` as that user; `scontrol show partition`, limits of the account"
        )
    return Problem(error or "srun ended without an answer", _HINTS["silent"])


def _workers(found: Findings) -> str:
    number = len(found.workers)
    return "1 worker" if number == 1 else f"{number} workers"
