# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Questions that may never be answered, such as a name server's."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

About = TypeVar("About", bound=Hashable)
Answer = TypeVar("Answer")


def answers(ask: Callable[[About], Answer], about: Iterable[About], seconds: float) -> dict[About, Answer]:
    """Return the answers that come in time, by what was asked. At most 16 questions are asked at once."""
    until = time.monotonic() + seconds
    waiting = list(about)
    found: dict[About, Answer] = {}

    def work() -> None:
        # Another thread may take the last question.
        with contextlib.suppress(IndexError):
            while time.monotonic() < until:
                one = waiting.pop()
                found[one] = ask(one)

    # Daemons: at its end Python waits for all other threads, also those of a pool.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(16, len(waiting)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)
