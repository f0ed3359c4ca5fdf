# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Waiting, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_while(look: Callable[[], T], seconds: float, every: float) -> T:
    """Call `look` until it returns a false value or the time is over; return its last value.

    It is called at least once, and again after the last pause. Usually it returns what is still missing, so that the
    caller can report it.

    :param seconds: timeout
    :param every: seconds between two calls

    >>> missing = [["node1", "node2"], ["node2"], []]
    >>> wait_while(lambda: missing.pop(0), seconds=60, every=0)
    []
    """
    end = time.monotonic() + seconds
    while (seen := look()) and time.monotonic() <= end:
        time.sleep(every)
    return seen
