"""Why no job ran on a node, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible.module_utils.slurmstead.slurm.nodes import Node
from ansible.module_utils.slurmstead.smoke.findings import Problem
from ansible.module_utils.slurmstead.smoke.report import SHOWN

FOREIGN_KEY = re.compile(r"authenticat|credential|munge|zero bytes", re.IGNORECASE)
"""srun's errors for a node with a different key or clock.

Slurm 22.05 only prints `Zero Bytes were transmitted or received`, because a slurmd that cannot decode a message closes
the connection.
"""

DEAF = "does not answer"

HINTS = {
    "missing": "add it to the workers of the inventory and configure Slurm; then `scontrol show node {node}`",
    "down": "on {node}: `systemctl status slurmd`; then `scontrol update nodename={node} state=resume`",
    "drain": "remove the cause; then `scontrol update nodename={node} state=resume`",
    "inval": "it has less than slurm.conf says: on {node} `slurmd -C`, compare `scontrol show node {node}`",
    "silent": "on {node}: `systemctl status slurmd munge`, `journalctl -u slurmd -n 20`; is it switched on?",
    "reserved": "`scontrol show reservation`",
    "reboot": "wait until {node} is back; `scontrol show node {node}`",
    "asleep": "wait until {node} is up, or raise smoke_test_deadline",
    "busy": "wait for these jobs, or raise smoke_test_deadline",
    "waiting": "`squeue --long`, `scontrol show node {node}`",
    "refused": "`srun --nodes=1 hostname` as that user; `scontrol show partition`, limits of the account",
    "first": "fix the failed checks `nodes` and `srun` first",
    "unbound": "SelectType=select/cons_tres, TaskPlugin=task/cgroup,task/affinity and ConstrainCores=yes; "
    "restart slurmd on {node}",
    "cores": "ConstrainCores=yes in cgroup.conf, TaskPlugin with task/cgroup; restart slurmd on {node}",
    "memory": "ConstrainRAMSpace=yes and ConstrainSwapSpace=yes in cgroup.conf, SelectTypeParameters=CR_Core_Memory; "
    "on {node}: is `memory` in /sys/fs/cgroup/cgroup.controllers? Then restart slurmd",
    "own munge": "on {node}: `systemctl restart munge`, `journalctl -u munge -n 20`",
    "munge": "compare `sha256sum /etc/munge/munge.key` and `date` on {node} and control; restart munge, slurmd",
}


def node_problem(node: Node | None, user: str) -> Problem | None:
    """Why this node cannot run a job of the user; None if it can."""
    if node is None:
        return Problem(f"not known to Slurm, or in no partition that {user} may use", HINTS["missing"])
    if node.usable:
        return None if node.partitions else Problem("its partitions are not up", "`scontrol show partition`")
    why = f": {node.reason}" if node.reason else ""
    since = f" (by {node.by} since {node.since})" if node.reason and node.by else ""
    if "*" in node.flags and not node.state.startswith("drain"):
        hint = HINTS["silent"]
    elif "$" in node.flags or node.state in {"reserved", "maint"}:
        hint = HINTS["reserved"]
    else:
        words = ("drain", "inval", "reboot")
        hint = next((HINTS[word] for word in words if node.state.startswith(word)), HINTS["down"])
    silent = f", {DEAF}" if "*" in node.flags else ""
    return Problem(f"{node.state}{silent}{why}{since}", hint)


def waited(node: Node | None, reason: str, jobs: Mapping[str, str], seconds: float) -> Problem:
    """A node on which a job of the test did not start in time.

    `reason`: squeue's. `jobs`: number → owner of the jobs of others on that node.
    """
    if node and (node.state.startswith("power") or set(node.flags) & set("~#%!")):
        return Problem(f"in power saving, not up within {seconds:.0f} s", HINTS["asleep"])
    text = ", ".join(f"job {number} of {owner}" for number, owner in list(jobs.items())[:SHOWN])
    if not text and node and node.state.startswith("alloc"):
        # With PrivateData=jobs, a user cannot see them.
        text = "jobs of other users"
    who = f"{text} on it" if text else reason or "no reason given"
    hint = HINTS["busy" if text else "waiting"]
    return Problem(f"no free CPU or memory within {seconds:.0f} s: {who}", hint)


def failed_start(error: str) -> Problem:
    """A node on which srun could not start a task."""
    if FOREIGN_KEY.search(error):
        return Problem(error, HINTS["munge"])
    if error.startswith("Unable to allocate resources"):
        return Problem(error, HINTS["refused"])
    return Problem(error or "srun ended without an answer", HINTS["silent"])
