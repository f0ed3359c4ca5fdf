# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What was done to which machine, when and why: lines of JSON."""

from __future__ import annotations

import dataclasses
import json
import pathlib

ASLEEP, AWAKE = "asleep", "awake"
"""Events that begin and end a sleep; the others are named by decide.Act."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """An event. `at` is in seconds since 1970."""

    at: float
    node: str
    what: str
    why: str = ""


def write(path: pathlib.Path, entry: Entry) -> None:
    """Append an entry. A power cut can leave half a line."""
    with path.open("a") as file:
        file.write(f"{json.dumps(dataclasses.asdict(entry))}\n")
