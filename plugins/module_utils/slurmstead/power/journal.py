# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What was done to which machine, when and why: lines of JSON; and what that saved."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping

ASLEEP, AWAKE = "asleep", "awake"
"""Events that begin and end a sleep; the others are named by decide.Act."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """An event. `at` is in seconds since 1970."""

    at: float
    node: str
    what: str
    why: str = ""


def read(directory: pathlib.Path, name: str = "power.log") -> list[Entry]:
    """Return the entries of the log and of what logrotate left of it, the oldest first; broken lines are left out."""
    found = []
    for path in directory.glob(f"{name}*"):
        for line in path.read_text(errors="replace").splitlines():
            try:
                found.append(Entry(**json.loads(line)))
            except (TypeError, ValueError):
                continue  # A power cut can leave half a line.
    return sorted(found, key=lambda entry: entry.at)


def write(path: pathlib.Path, entries: Iterable[Entry]) -> None:
    """Append entries; only root and the group of the log's directory may read them."""
    lines = "".join(f"{json.dumps(dataclasses.asdict(entry))}\n" for entry in entries)
    if lines:
        with path.open("a") as file:
            file.write(lines)


@dataclasses.dataclass(frozen=True)
class Saving:
    """What one machine saved: hours slept, how often, and kWh (0 if its watts are unknown)."""

    node: str
    hours: float
    sleeps: int
    kwh: float


def savings(entries: Iterable[Entry], watts: Mapping[str, float], since: float, now: float) -> list[Saving]:
    """Return what each machine saved between two times; one that sleeps now has slept until now.

    >>> slept = [Entry(0, "n1", "asleep"), Entry(7200, "n1", "awake"), Entry(10800, "n1", "asleep")]
    >>> savings(slept, {"n1": 150}, since=3600, now=14400)
    [Saving(node='n1', hours=2.0, sleeps=2, kwh=0.3)]
    """
    slept: dict[str, list[float]] = {}
    for node, start, end in _sleeps(entries, now):
        seconds = min(end, now) - max(start, since)
        if seconds > 0:
            slept.setdefault(node, []).append(seconds / 3600)
    return [
        Saving(node, round(sum(hours), 2), len(hours), round(sum(hours) * watts.get(node, 0) / 1000, 2))
        for node, hours in sorted(slept.items())
    ]


def _sleeps(entries: Iterable[Entry], now: float) -> Iterator[tuple[str, float, float]]:
    since: dict[str, float] = {}
    for entry in entries:
        if entry.what == ASLEEP:
            since.setdefault(entry.node, entry.at)
        elif entry.what == AWAKE and entry.node in since:
            yield entry.node, since.pop(entry.node), entry.at
    for node, start in since.items():
        yield node, start, now
