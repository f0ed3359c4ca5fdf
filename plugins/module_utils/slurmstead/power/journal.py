# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What was done to which machine, when and why: lines of JSON."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterable

ASLEEP, AWAKE = "asleep", "awake"
"""Events that begin and end a sleep; the others are named by decide.Act."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """An event. `at` is in seconds since 1970."""

    at: float
    node: str
    what: str
    why: str = ""


def write(path: pathlib.Path, entries: Iterable[Entry]) -> None:
    """Append entries. A power cut can leave half a line."""
    lines = "".join(f"{json.dumps(dataclasses.asdict(entry))}\n" for entry in entries)
    if lines:
        with path.open("a") as file:
            file.write(lines)
