"""Waiting with a timeout for functions that may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class NoAnswerError(Exception):
    """A command or the share did not answer; the text says which, and its error."""


def bounded(function: Callable[[], T], seconds: float, what: str) -> T:
    """The result of a function that may hang in the kernel, for example on a dead NFS server.

    Raises NoAnswerError after `seconds`, and for an OSError of the function.
    """
    results: list[T] = []
    errors: list[OSError] = []

    def work() -> None:
        try:
            results.append(function())
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise NoAnswerError(f"{errors[0].strerror}: {errors[0].filename or what}")
    if not results:
        raise NoAnswerError(f"{what} did not answer within {seconds:.0f} s")
    return results[0]
