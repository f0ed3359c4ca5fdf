"""The Slurm commands of the smoke test, and the parsing of their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ansible.module_utils.slurmstead.reach.commands import without_options
from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.slurm.nodes import Node


def cover(nodes: Mapping[str, Node], wanted: Iterable[str]) -> list[tuple[str, list[str]]]:
    """A small set of partitions that together contain the wanted nodes, with the nodes to test in each.

    A step cannot span partitions. The default one comes first, then the one with most of the remaining nodes. Nodes
    that are in no active partition are left out.
    """
    rest = list(wanted)
    default = next((nodes[name].partitions[0] for name in rest if nodes[name].partitions), "")
    result: list[tuple[str, list[str]]] = []
    while True:
        members: dict[str, list[str]] = {}
        for name in rest:
            for partition in nodes[name].partitions:
                members.setdefault(partition, []).append(name)
        if not members:
            return result
        best = default if default in members else max(members, key=lambda partition: len(members[partition]))
        result.append((best, members[best]))
        rest = [name for name in rest if name not in members[best]]


def groups(names: Sequence[str], most: int) -> list[list[str]]:
    """The names in at most `most` groups of nearly equal size.

    >>> groups(["a", "b", "c", "d", "e"], 2)
    [['a', 'b', 'c'], ['d', 'e']]
    """
    size = -(-len(names) // most) if names else 1
    return [list(names[start : start + size]) for start in range(0, len(names), size)]


def ask(name: str, partition: str, mebibytes: int, minutes: int, give_up: int) -> list[str]:
    """The options of all jobs of the smoke test. All are explicit, because the versions' defaults differ.

    `give_up`: seconds after which slurmctld removes the job even if the test cannot cancel it any more (--deadline).
    """
    return [
        f"--job-name={name}",
        f"--partition={partition}",
        "--cpus-per-task=1",
        f"--mem={mebibytes}M",
        f"--time={minutes}",
        f"--deadline=now+{give_up + 60 * minutes}",
    ]


def srun(options: Sequence[str], nodes: Sequence[str], command: Sequence[str]) -> list[str]:
    """One task on each of these nodes.

    - `--chdir=/`: the working directory of the caller need not exist there.
    - `--kill-on-bad-exit=0 --wait=0`: a node's failure must not silence the others.
    - setpriv: if its parent is killed, srun releases its job.
    """
    number = len(nodes)
    return [
        *("setpriv", "--pdeathsig=TERM", "srun", *options),
        *(f"--nodes={number}", f"--ntasks={number}", "--ntasks-per-node=1", f"--nodelist={compress(nodes)}"),
        *("--chdir=/", "--mpi=none", "--kill-on-bad-exit=0", "--wait=0", "--input=none", *command),
    ]


def sbatch(options: Sequence[str], directory: str) -> list[str]:
    """A batch job on any one node; its script comes on stdin, its output goes to `directory`/batch.out."""
    place = (f"--chdir={directory}", f"--output={directory}/batch.out")
    return ["sbatch", "--parsable", *options, "--no-requeue", "--nodes=1", "--ntasks=1", *place]


_ERROR = re.compile(r"^(?:srun|sbatch|sinfo|squeue|slurm\w*)(?:-\S+)?: (?:error: |fatal: )?(.*)$")
_ECHO = (
    "Job step aborted",
    "Timed out waiting for job step",
    "Force Terminated",
    "forcing job termination",
    "If munged is up",
    "got SIGCONT",
    "Application launch failed",
    "Job allocation",
    "Some of your processes",
    "Waiting up to",
)


def complaint(stderr: str, node: str = "") -> str:
    """The most relevant line of a Slurm command's stderr: the one about that node, else the first.

    >>> complaint("srun: job 7 queued and waiting for resources\\nsrun: error: Unable to allocate resources: Foo\\n")
    'Unable to allocate resources: Foo'
    """
    said = []
    for line in stderr.splitlines():
        match = _ERROR.match(line.strip())
        text = match[1].strip() if match else line.strip()
        if text and not any(echo in text for echo in _ECHO) and not text.endswith("waiting for resources"):
            said.append(("error: " in line or "fatal: " in line, text))
    named = [text for _, text in said if node and re.search(rf"\b{re.escape(node)}\b", text)]
    errors = [text for is_error, text in said if is_error]
    rest = [text for _, text in said]
    return (named or errors or rest or [""])[0][:200]


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without the options for Slurm's commands in it (srun(1), INPUT ENVIRONMENT)."""
    kept = without_options(inherited)
    path = [*filter(None, [kept.get("PATH")]), "/usr/local/bin", "/usr/bin", "/bin"]
    return {**kept, "LC_ALL": "C", "PATH": ":".join(path)}
