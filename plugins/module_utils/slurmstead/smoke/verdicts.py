"""The verdicts of the smoke test: what was expected, what was seen, and what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.smoke.causes import DEAF, FOREIGN_KEY, HINTS, node_problem
from ansible.module_utils.slurmstead.smoke.findings import Findings, Problem
from ansible.module_utils.slurmstead.smoke.probe import ASKED_MIB, USED_MIB
from ansible.module_utils.slurmstead.smoke.report import Check, summarise

REMOTE = re.compile(
    r"nfs\d?|cifs|smb3?|9p|virtiofs|afs|ceph|lustre|gpfs|beegfs|glusterfs|fuse\.\w*(ssh|gluster|ceph)\w*"
)
"""Types of network file systems (/proc/self/mountinfo)."""

Judge = Callable[[str, dict[str, Any]], Problem | None]
"""Returns the problem in a node's answer to one part of the probe."""


def verdict(found: Findings) -> list[Check]:
    """All checks, in the order of CHECKS."""
    return [check(found) for check in CHECKS.values()]


def not_run(error: str, control: str, munge_error: str = "") -> list[Check]:
    """All checks failed, because slurmctld did not answer; if munge is broken on control, the cause is munge."""
    hint = f"on {control}: `systemctl status slurmctld munge`, `journalctl -u slurmctld -n 20`"
    checks = [Check(name, False, "a run", "not run: slurmctld does not answer", hint) for name in CHECKS]
    checks[0] = Check("nodes", False, "an answer from slurmctld", error, hint)
    if munge_error:
        hint = HINTS["own munge"].replace("{node}", control)
        checks[-1] = Check("munge", False, f"a credential made and read on {control}", munge_error, hint)
    return checks


def _check(found: Findings, name: str, expected: str, good: str, problems: Mapping[str, Problem]) -> Check:
    """A check that passes unless a worker has a problem."""
    if not problems:
        return Check(name, True, expected, good, "")
    seen, hint = summarise(problems)
    fine = [worker for worker in found.workers if worker not in problems]
    return Check(name, False, expected, f"{compress(fine)}: good; {seen}" if fine else seen, hint)


def _each(found: Findings, part: str, judge: Judge) -> dict[str, Problem]:
    """Judge the answers of all workers to one part; a missing answer is also a problem."""
    problems: dict[str, Problem | None] = {}
    for node in found.workers:
        answers = found.answers.get(node, {})
        if part in answers:
            problems[node] = judge(node, answers[part])
        elif "host" in answers:
            problems[node] = Problem(
                "its probe gave no answer in time", f"on {{node}}: is {part} stuck? `dmesg | tail`"
            )
        else:
            problems[node] = Problem("not tested, no job answered", HINTS["first"])
    return {node: problem for node, problem in problems.items() if problem}


def _silence(found: Findings, node: str) -> Problem:
    """Why no job answered from this node."""
    sick = node_problem(found.nodes.get(node), found.user)
    if sick:
        return sick._replace(seen=sick.seen.split(":")[0])
    return found.untested.get(node, Problem("no answer", HINTS["silent"]))


def _types(found: Findings, part: str) -> str:
    """The file system types of the share, or of scratch."""
    return ", ".join(sorted({str(parts[part].get("type")) for parts in found.answers.values() if part in parts}))


def _workers(found: Findings) -> str:
    number = len(found.workers)
    return "1 worker" if number == 1 else f"{number} workers"


def check_nodes(found: Findings) -> Check:
    """Slurm knows every worker and can use it."""
    judged = {name: node_problem(found.nodes.get(name), found.user) for name in found.workers}
    problems = {name: problem for name, problem in judged.items() if problem}
    states = Counter(found.nodes[name].state for name in found.workers if name in found.nodes)
    good = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    return _check(found, "nodes", f"{_workers(found)} known and usable", good, problems)


def check_srun(found: Findings) -> Check:
    """One srun on all workers returns a distinct host name from each."""
    names: dict[str, str] = {}
    problems: dict[str, Problem] = {}
    for node in found.workers:
        host = found.answers.get(node, {}).get("host", {}).get("host")
        if host is None:
            problems[node] = _silence(found, node)
        elif host in names:
            hint = "on {node}: `hostnamectl hostname {node}`, then restart slurmd"
            problems[node] = Problem(f"calls itself {host}, as {names[host]} does", hint)
        names.setdefault(host or "", node)
    answered = compress(name for name in names if name)
    return _check(found, "srun", f"{len(found.workers)} distinct host names", answered, problems)


def check_sbatch(found: Findings) -> Check:
    """A batch job ran, its output is on the share, and it has left the queue."""
    job = f"job {found.batch.job}" + (f" on {found.batch.node}" if found.batch.node else "")
    problem = _batch_problem(found, job)
    good = f"{job}, output read on {found.control}, queue empty"
    expected = "a job ends, its output is on the share, and it leaves the queue"
    return Check("sbatch", not problem, expected, *(problem or (good, "")))


def _batch_problem(found: Findings, job: str) -> Problem | None:
    """The problem of the batch job."""
    batch = found.batch
    there, look = batch.node or "its node", f"`findmnt {found.share}`"
    if not batch.job:
        return Problem(batch.error or "not submitted", "`sbatch --test-only`, `scontrol show partition`")
    if batch.state in {"PENDING", "CONFIGURING", "RUNNING"}:
        why = f" ({batch.reason})" if batch.reason not in {"", "None"} else ""
        return Problem(f"{job} is still {batch.state.lower()}{why}", "`squeue`; raise smoke_test_deadline")
    if batch.state not in {"", "COMPLETED", "COMPLETING"}:
        hint = f"on {there}: {look}, `journalctl -u slurmd`"
        return Problem(f"{job} ended as {batch.state.lower()} ({batch.reason})", hint)
    if batch.output is None or found.nonce not in batch.output:
        what = "nothing" if batch.output is None else "something else"
        seen = f"{job} ended, but {what} is in {batch.directory}/batch.out"
        return Problem(seen, f"on {there} and {found.control}: {look}")
    if batch.state == "COMPLETING":
        return Problem(f"{job} does not leave the queue", f"on {there}: is Epilog stuck? `journalctl -u slurmd`")
    return None


def check_cpu(found: Findings) -> Check:
    """A job that requested one CPU can use one: one core with its hardware threads, which Slurm does not divide."""

    def judge(_: str, seen: dict[str, Any]) -> Problem | None:
        if "error" in seen:
            return Problem(seen["error"], "on {node}: `journalctl -u slurmd`")
        if seen["usable"] <= seen["core"]:
            return None
        if seen["bound"] > seen["core"]:
            return Problem(f"a job sees {seen['bound']} of {seen['online']} CPUs", HINTS["unbound"])
        return Problem(f"a job is bound to {seen['bound']} CPU but can take {seen['usable']}", HINTS["cores"])

    problems = _each(found, "cpu", judge)
    return _check(found, "one-cpu", "one CPU asked is one CPU seen", f"1 on each of {_workers(found)}", problems)


def check_memory(found: Findings) -> Check:
    """The kernel kills a job that uses more memory than requested, and Slurm reports it."""

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        ended = seen.get("ended", "")
        if ended == "survived":
            return Problem(f"a job that asked for {ASKED_MIB} MiB used {USED_MIB} MiB", HINTS["memory"])
        if ended == "refused":
            hint = "on {node}: `ulimit -v`, PropagateResourceLimits"
            return Problem("a shell limit ended the job, not the kernel's memory limit", hint)
        if node not in found.reported:
            hint = "on {node}: `journalctl -u slurmd`, `dmesg`"
            return Problem("the job was killed, but not reported as out of memory", hint)
        return None

    expected = f"a job that asked for {ASKED_MIB} MiB and uses {USED_MIB} MiB is killed and reported"
    problems = _each(found, "memory", judge)
    return _check(found, "memory-limit", expected, f"OUT_OF_MEMORY on {_workers(found)}", problems)


def check_share(found: Findings) -> Check:
    """Every worker can read control's file on the share, and control can read theirs."""
    look = f"on {{node}}: `findmnt {found.share}`"

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        where = f" ({seen.get('type', '?')} on {seen.get('source', '?')})"
        if "error" in seen:
            return Problem(f"{seen['error']}{where}", f"{look}, `systemctl restart remote-fs.target`")
        if seen["read"] != found.nonce:
            return Problem(f"reads other content than {found.control} wrote{where}", look)
        if found.read_back.get(node) != seen.get("wrote"):
            return Problem(f"{found.control} does not see what the node wrote{where}", look)
        return None

    expected = f"{found.share} has the same content on {found.control} and {_workers(found)}"
    if found.share_error:
        problem = Problem(found.share_error, f"{look}, `systemctl status nfs-server`")
        return Check("share", False, expected, *summarise({found.control: problem}))
    good = f"{len(found.workers)} read, {len(found.read_back)} written back ({_types(found, 'share')})"
    return _check(found, "share", expected, good, _each(found, "share", judge))


def check_scratch(found: Findings) -> Check:
    """$SCRATCH is a directory below the scratch path, writable, on the node's own disk."""
    top = found.scratch

    def judge(_: str, seen: dict[str, Any]) -> Problem | None:
        where = f"{seen.get('given') or top} ({seen.get('type', '?')} on {seen.get('source', '?')})"
        if REMOTE.fullmatch(str(seen.get("type", ""))) or seen.get("shared"):
            return Problem(f"{where} is not local to the node", f"on {{node}}: `findmnt {top}`")
        if not seen.get("given"):
            hint = f"on {{node}}: `findmnt {top}`, `df {top}`; TaskProlog in slurm.conf"
            return Problem("$SCRATCH is not set in a job", hint)
        if "error" in seen:
            return Problem(f"cannot write to {where}: {seen['error']}", f"on {{node}}: `ls -ld {top}`, `df {top}`")
        if not seen["inside"]:
            return Problem(f"$SCRATCH is {where}, not below {top}", "TaskProlog in slurm.conf")
        return None

    good = f"written on {_workers(found)} ({_types(found, 'scratch')})"
    expected = f"$SCRATCH is writable, local and below {top}"
    return _check(found, "scratch", expected, good, _each(found, "scratch", judge))


def check_munge(found: Findings) -> Check:
    """A credential of control is valid on every worker, and vice versa."""
    control = found.control

    def judge(node: str, seen: dict[str, Any]) -> Problem | None:
        if "error" in seen or seen.get("failed"):
            return Problem(seen.get("error") or seen["failed"], "on {node}: `systemctl restart munge`")
        if not valid(seen["read"]):
            return Problem(f"reads {control}'s credential as: {seen['read']}", _munge_hint(seen["read"]))
        status = found.decoded.get(node, "not read")
        if not valid(status):
            return Problem(f"{control} reads its credential as: {status}", _munge_hint(status))
        return None

    expected = f"credentials of {control} valid on {_workers(found)}, and theirs on {control}"
    if found.munge_error:
        problem = Problem(found.munge_error, HINTS["own munge"])
        return Check("munge", False, expected, *summarise({control: problem}))
    problems = _each(found, "munge", judge)
    for node in problems:
        # A slurmd that cannot read slurmctld's messages does not answer, so the probe cannot say why.
        text = "" if "host" in found.answers.get(node, {}) else _silence(found, node).seen
        if FOREIGN_KEY.search(text):
            problems[node] = Problem(f"not tested: {text}", HINTS["munge"])
        elif DEAF in text:
            problems[node] = Problem(f"not tested: {text}", f"if {{node}} is on: {HINTS['munge']}")
    return _check(found, "munge", expected, f"{len(found.decoded)} round trips", problems)


def valid(status: str) -> bool:
    """Whether unmunge's status proves equal keys and clocks.

    A replayed credential does: it was accepted once before by the same munged, as when a node has two slurmds.

    >>> valid("Success (0)"), valid("Replayed credential (17)"), valid("Invalid credential (12)")
    (True, True, False)
    """
    return status.startswith(("Success", "Replayed"))


def _munge_hint(status: str) -> str:
    if status.startswith(("Expired", "Rewound")):
        return "the clocks differ by minutes: `chronyc tracking` on {node} and control"
    return HINTS["munge"]


CHECKS: Mapping[str, Callable[[Findings], Check]] = {
    "nodes": check_nodes,
    "srun": check_srun,
    "sbatch": check_sbatch,
    "one-cpu": check_cpu,
    "memory-limit": check_memory,
    "share": check_share,
    "scratch": check_scratch,
    "munge": check_munge,
}
"""All checks, in the order of the report."""
