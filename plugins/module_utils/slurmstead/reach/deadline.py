# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Waiting, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_while(look: Callable[[], T], seconds: float, every: float) -> T:
    """Call `look` until it returns something false or the time is over; return what it returned last.

    It is called at least once, and again after the last pause. What it returns is usually what is still missing, so
    that the caller can say so.

    :param seconds: time in which it should become false
    :param every: seconds between two calls

    >>> missing = [["node1", "node2"], ["node2"], []]
    >>> wait_while(lambda: missing.pop(0), seconds=60, every=0)
    []
    """
    end = time.monotonic() + seconds
    while (seen := look()) and time.monotonic() <= end:
        time.sleep(every)
    return seen
