# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What was done to which machine, when and why: lines of JSON."""

from __future__ import annotations

import dataclasses
import gzip
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
    """Append an entry, on a line of its own also after half a line, which a power cut can leave."""
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read() != b"\n":
                file.write(b"\n")
        file.write(f"{json.dumps(dataclasses.asdict(entry))}\n".encode())


def read(path: pathlib.Path) -> list[Entry]:
    """Return the entries of the log and of the older logs that logrotate kept, the oldest first.

    Lines that are not entries are left out.
    """
    found = []
    for file in path.parent.glob(f"{path.name}*"):
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        for line in data.decode(errors="replace").splitlines():
            try:
                values = json.loads(line)
                found.append(Entry(float(values["at"]), *(str(values[key]) for key in ("node", "what", "why"))))
            except (KeyError, TypeError, ValueError):
                continue
    return sorted(found, key=lambda entry: entry.at)
