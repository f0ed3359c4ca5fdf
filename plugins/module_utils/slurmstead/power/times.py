# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""How long a machine is idle before it sleeps, as a person writes it."""

from __future__ import annotations

import re

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
