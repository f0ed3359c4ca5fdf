"""The lines of the smoke test's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ansible.module_utils.slurmstead.slurm.hostlist import compress
from ansible.module_utils.slurmstead.smoke.findings import Problem

SHOWN = 3
"""Number of different findings that one line lists; the rest is counted."""


class Check(NamedTuple):
    """One line of the result."""

    name: str
    ok: bool
    expected: str
    seen: str
    hint: str

    def line(self) -> str:
        """The check in readable form.

        >>> Check("nodes", True, "3 workers known and usable", "3 idle", "").line()
        'ok    nodes: 3 idle'
        """
        if self.ok:
            return f"ok    {self.name}: {self.seen}"
        return f"FAIL  {self.name}: expected {self.expected}; seen {self.seen}; do: {self.hint}"


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
