# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""How equal the measurements of nodes are, and which node does not match the others: pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

TOLERANCE = 0.02
"""Nodes that differ by less count as equal."""
NOISE = 3
"""How many times the usual spread within a node is not a coincidence."""
KINDS = ("compute", "memory")

Times = Mapping[str, Mapping[str, Sequence[float]]]
"""Seconds of each run, by node and kind."""


class Report(NamedTuple):
    """What is printed, and whether all nodes answered and match."""

    lines: list[str]
    ok: bool


def spread(times: Sequence[float]) -> float:
    """Return the distance between the longest and the shortest time as a part of the median.

    >>> spread([0.99, 1.0, 1.01])
    0.02
    """
    return round((max(times) - min(times)) / statistics.median(times), 4)


def report(answers: Mapping[str, Mapping[str, Any]], problems: Mapping[str, str]) -> Report:
    """Return the report for the answers of benchmark.PROGRAM and for nodes that did not answer, by node.

    Nodes of different hardware are not compared.
    """
    width = max(map(len, [*answers, *problems, ""]))
    lines = [f"{node:<{width}}  {_line(answers[node]['seconds'])}" for node in sorted(answers)]
    lines += [f"{node:<{width}}  not measured: {why}" for node, why in sorted(problems.items())]
    wrong = [f"{node} was not made quiet: see `journalctl -t slurmstead-quiet` there" for node in _loud(answers)]
    kinds: dict[str, dict[str, Mapping[str, Sequence[float]]]] = {}
    for node, answer in sorted(answers.items()):
        kinds.setdefault(answer["hardware"], {})[node] = answer["seconds"]
    for hardware, times in sorted(kinds.items()):
        if len(times) > 1:
            lines.append(f"between {len(times)} nodes ({hardware}): {_between(times)}")
        wrong += mismatches(times)
    return Report([*lines, *wrong], not wrong and not problems)


def mismatches(times: Times) -> list[str]:
    """Return a line for each node of equal hardware that is slower, faster or less steady than the others."""
    return [line for kind in KINDS for line in (*_different(times, kind), *_unsteady(times, kind))]


def _different(times: Times, kind: str) -> Iterator[str]:
    medians = {node: statistics.median(own[kind]) for node, own in times.items()}
    noise = statistics.median(spread(own[kind]) for own in times.values())
    if len(medians) == 2:
        first, second = medians
        part = abs(medians[first] - medians[second]) / min(medians.values())
        if part > max(TOLERANCE, noise):
            yield f"{first} and {second} do not match: {kind} differs by {_percent(part)}"
        return
    middle = statistics.median(medians.values())
    for node, median in medians.items():
        part = median / middle - 1
        if abs(part) > max(TOLERANCE, noise):
            yield f"{node} does not match: {kind} takes {_percent(abs(part))} {'longer' if part > 0 else 'less'}"


def _unsteady(times: Times, kind: str) -> Iterator[str]:
    spreads = {node: spread(own[kind]) for node, own in times.items()}
    for node, own in spreads.items():
        others = [other for name, other in spreads.items() if name != node]
        usual = statistics.median(others) if others else 0.0
        if others and own > max(TOLERANCE, NOISE * usual):
            yield f"{node} is not steady: {kind} spreads by {_percent(own)}, on the others by {_percent(usual)}"


def _between(times: Times) -> str:
    found = ((kind, spread([statistics.median(own[kind]) for own in times.values()])) for kind in KINDS)
    return ", ".join(f"{kind} {_percent(part)}" for kind, part in found)


def _loud(answers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [node for node, answer in sorted(answers.items()) if not answer["quiet"]]


def _line(times: Mapping[str, Sequence[float]]) -> str:
    return "   ".join(
        f"{kind} {1000 * statistics.median(times[kind]):.2f} ms, spread {_percent(spread(times[kind]))}"
        for kind in KINDS
    )


def _percent(part: float) -> str:
    """Return a part in words.

    >>> _percent(0.0123)
    '1.2 %'
    """
    return f"{100 * part:.1f} %"
