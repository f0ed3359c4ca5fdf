"""What the smoke test says to Slurm and reads from it. Formats hold for Slurm 21.08 to 24.11 (sinfo(1), squeue(1))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible.module_utils.slurmstead.slurm.hostlist import compress

SINFO = ("sinfo", "--Node", "--noheader", "--format=%N|%T|%C|%a|%P|%u|%H|%E")
"""One line per node and partition that the caller may use. The reason comes last, because it may hold any character."""

QUEUE_FORMAT = "%i|%j|%T|%N|%u|%r"

USABLE = frozenset(
    {
        "idle",
        "mixed",
        "allocated",
        "completing",
        "planned",
        "blocked",
        "powered_down",
        "power_down",
        "powering_up",
        "power_up",
        "powering_down",
    }
)
"""States (sinfo(1), NODE STATE CODES) of nodes that run jobs now, or will without anybody's help."""

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

_FLAGS = "*~#!%$@^+-"


@dataclass(frozen=True)
class Node:
    """A node as sinfo shows it.

    `flags` are the characters behind the state: `*` does not answer, `$` is reserved, `^` reboots (sinfo(1)).
    """

    name: str
    state: str
    flags: str = ""
    idle_cpus: int = 0
    partitions: tuple[str, ...] = ()
    """Partitions that accept and start jobs of the caller, the default one first."""
    reason: str = ""
    by: str = ""
    since: str = ""

    @property
    def usable(self) -> bool:
        """Whether a job of an ordinary user can run here, now or after the jobs that are there."""
        return self.state in USABLE and not set(self.flags) & set("*$^")


@dataclass(frozen=True)
class Job:
    """A line of squeue. `nodes` is Slurm's host list, empty while the job waits."""

    number: str
    name: str
    state: str
    nodes: str
    user: str
    reason: str


def split_state(text: str) -> tuple[str, str]:
    """The state and the flags behind it.

    >>> split_state("DOWN*"), split_state("mixed-"), split_state("powering_up#")
    (('down', '*'), ('mixed', '-'), ('powering_up', '#'))
    """
    state = text.strip().rstrip(_FLAGS)
    return state.lower(), text.strip()[len(state) :]


def read_nodes(text: str) -> dict[str, Node]:
    """All nodes of the output of SINFO, by name. A node of several partitions is one node.

    >>> read_nodes("n1|drained*|0/0/2/2|up|main*|root|2026-11-20T10:00:00|bad | disk")["n1"].reason
    'bad | disk'

    Raises ValueError with the line that is not of that form.
    """
    nodes: dict[str, Node] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = line.split("|", 7)
        cpus = fields[2].split("/") if len(fields) == 8 else []
        if len(cpus) != 4 or not cpus[1].isdigit():
            raise ValueError(f"sinfo printed {line!r}; expected eight fields such as n1|idle|0/2/0/2|up|main*|…")
        name, partition = fields[0].strip(), fields[4].strip()
        state, flags = split_state(fields[1])
        known = nodes[name].partitions if name in nodes else ()
        here: tuple[str, ...] = (partition.rstrip("*"),) if fields[3].strip() == "up" else ()
        partitions = here + known if partition.endswith("*") else known + here
        by, since, reason = (_nothing(field.strip()) for field in fields[5:8])
        nodes[name] = Node(name, state, flags, int(cpus[1]), partitions, reason, by, since)
    return nodes


def _nothing(text: str) -> str:
    """Slurm's words for an empty field are an empty text."""
    return "" if text.lower() in {"none", "unknown", "n/a", "(null)"} else text


def read_queue(text: str) -> list[Job]:
    """The jobs of squeue's output in QUEUE_FORMAT; lines of another form are left out."""
    rows = (line.strip().split("|", 5) for line in text.splitlines())
    return [Job(*row) for row in rows if len(row) == 6]


def cover(nodes: Mapping[str, Node], wanted: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Few partitions that together hold the wanted nodes, with the nodes to test through each.

    A step cannot span partitions. The default one goes first, then the one that holds most of the rest. Nodes in no
    partition that is up stay out.
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
    """The options that all jobs of the smoke test share. Each version's defaults differ, so nothing is left to them.

    `give_up`: seconds after which slurmctld removes the job even when nobody is left to cancel it (--deadline).
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
    - setpriv: an srun whose parent was killed gives its job back.
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
    """The line of a Slurm command's stderr that says most: about that node if there is one, else the first.

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
    """The caller's environment without the wishes that Slurm's commands read from it (srun(1), INPUT ENVIRONMENT)."""
    wish = re.compile(r"(SLURM|SLURMD|SRUN|SBATCH|SALLOC|SINFO|SQUEUE|SCANCEL)_")
    kept = {name: value for name, value in inherited.items() if name == "SLURM_CONF" or not wish.match(name)}
    path = [*filter(None, [kept.get("PATH")]), "/usr/local/bin", "/usr/bin", "/bin"]
    return {**kept, "LC_ALL": "C", "PATH": ":".join(path)}
