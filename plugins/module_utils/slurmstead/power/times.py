# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""How long a machine is idle before it sleeps, as a person writes it, and how long it may take."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
TIME = re.compile(r"([1-9]\d*) ?(s|min|h)")


def seconds(text: str) -> float:
    """Return a time in seconds.

    >>> seconds("20min"), seconds("2 h")
    (1200.0, 7200.0)

    :raises ValueError: it is not a number with one of UNITS
    """
    found = TIME.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a time such as 20min or 2h")
    return int(found[1]) * UNITS[found[2]]


RESUME, SUSPEND = 600, 180
"""Slurm's timeouts in seconds for machines that were not measured."""


def timeouts(on: Iterable[float | None], off: Iterable[float | None]) -> dict[str, int]:
    """Return Slurm's timeouts for the seconds that machines take; None if a machine was not measured.

    A boot can take twice as long when it checks its disks. Shutting down includes two looks and the silence after it.
    """
    resume = [RESUME if one is None else max(120, round(2 * one) + 60) for one in on]
    suspend = [SUSPEND if one is None else max(60, round(1.5 * one) + 30) for one in off]
    return {"ResumeTimeout": max(resume, default=RESUME), "SuspendTimeout": max(suspend, default=SUSPEND)}
