# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The nodes that a user may use, as sinfo shows them. The format holds for Slurm 21.08 to 24.11 (sinfo(1))."""

from __future__ import annotations

from dataclasses import dataclass

from ansible.module_utils.slurmstead.slurm.answers import STATE_FLAGS

SINFO = ("sinfo", "--Node", "--noheader", "--format=%N|%T|%C|%a|%P|%u|%H|%E")
"""One line per node and partition that the caller may use. The reason is last: it may contain any character."""

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
"""States (sinfo(1), NODE STATE CODES) of nodes that run jobs now, or will without an administrator's action."""


@dataclass(frozen=True)
class Node:
    """A node as sinfo shows it.

    `flags` are the characters after the state: `*` does not answer, `$` is reserved, `^` reboots (sinfo(1)).
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
        """Whether a job of an ordinary user can run here, now or after the current jobs."""
        return self.state in USABLE and not set(self.flags) & set("*$^")


def split_state(text: str) -> tuple[str, str]:
    """The state and the flags after it.

    >>> split_state("DOWN*"), split_state("mixed-"), split_state("powering_up#")
    (('down', '*'), ('mixed', '-'), ('powering_up', '#'))
    """
    state = text.strip().rstrip(STATE_FLAGS)
    return state.lower(), text.strip()[len(state) :]


def read_sinfo(text: str) -> dict[str, Node]:
    """All nodes of the output of SINFO, by name. A node of several partitions is one node.

    >>> read_sinfo("n1|drained*|0/0/2/2|up|main*|root|2026-11-20T10:00:00|bad | disk")["n1"].reason
    'bad | disk'

    Raises ValueError with the malformed line.
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
    """Return a field; Slurm's words for an empty field become an empty text."""
    return "" if text.lower() in {"none", "unknown", "n/a", "(null)"} else text
