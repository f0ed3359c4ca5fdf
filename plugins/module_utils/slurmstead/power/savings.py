# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What sleeping machines saved, from the journal."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from ansible.module_utils.slurmstead.power.journal import ASLEEP, AWAKE, Entry


@dataclasses.dataclass(frozen=True)
class Saving:
    """What one machine saved; None where its watts or the price are unknown."""

    node: str
    hours: float
    sleeps: int
    kwh: float | None
    money: float | None


def savings(
    entries: Iterable[Entry],
    watts: Mapping[str, float],
    price: float,
    span: tuple[float, float],
    watched: Collection[str],
) -> list[Saving]:
    """Return what each machine saved in a span of time.

    A sleep without an end goes on if the machine is still watched. Otherwise its end is unknown, and it does not count.

    >>> slept = [Entry(0, "n1", "asleep"), Entry(7200, "n1", "awake"), Entry(10800, "n1", "asleep")]
    >>> savings(slept, {"n1": 150}, 0.4, (3600, 14400), ["n1"])
    [Saving(node='n1', hours=2.0, sleeps=2, kwh=0.3, money=0.12)]
    >>> savings(slept, {}, 0.4, (3600, 14400), [])
    [Saving(node='n1', hours=1.0, sleeps=1, kwh=None, money=None)]
    """
    slept: dict[str, list[float]] = {}
    for node, start, end in _sleeps(entries, span[1], watched):
        seconds = min(end, span[1]) - max(start, span[0])
        if seconds > 0:
            slept.setdefault(node, []).append(seconds / 3600)
    return [_saving(node, hours, watts.get(node, 0), price) for node, hours in sorted(slept.items())]


def _saving(node: str, sleeps: list[float], watts: float, price: float) -> Saving:
    hours = sum(sleeps)
    kwh = round(hours * watts / 1000, 3) if watts else None
    return Saving(node, round(hours, 2), len(sleeps), kwh, round(kwh * price, 2) if kwh is not None and price else None)


def _sleeps(entries: Iterable[Entry], now: float, watched: Collection[str]) -> Iterator[tuple[str, float, float]]:
    since: dict[str, float] = {}
    for entry in entries:
        if entry.what == ASLEEP:
            since.setdefault(entry.node, entry.at)
        elif entry.what == AWAKE and entry.node in since:
            yield entry.node, since.pop(entry.node), entry.at
    for node, start in since.items():
        if node in watched:
            yield node, start, now
