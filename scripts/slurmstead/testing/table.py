"""Shows the table of last passes."""

import dataclasses
import datetime
import json

from rich.console import Console
from rich.table import Table
from rich.text import Text

from slurmstead.testing.record import DAYS, Passed, keys, overdue
from slurmstead.wording import duration

WIDTH = 120
"""Width of the table in characters without a terminal."""


def print_table(console: Console, table: dict[str, Passed], now: datetime.datetime) -> None:
    """Print one line for each scenario and lab; those that must be run again are red."""
    late = overdue(table, now)
    shown = Table("scenario", "lab", "last passed (UTC)", "commit", "took", "tests", box=None, pad_edge=False)
    for key in keys():
        name, _, lab = key.partition(" ")
        line = table.get(key)
        at = Text(line.at[:16].replace("T", " ") if line else "never", style="red" if key in late else "")
        rest = [line.commit[:7], duration(line.seconds), str(line.tests)] if line else ["", "", ""]
        shown.add_row(name, lab, at, *rest)
    # A file or a pipe has no limited width.
    wide = console if console.is_terminal else Console(file=console.file, width=WIDTH, highlight=False)
    wide.print(shown)


def to_json(table: dict[str, Passed], now: datetime.datetime) -> str:
    """Return the table as JSON; a scenario that never passed has `null`."""
    late = overdue(table, now)
    lines = []
    for key in keys():
        name, _, lab = key.partition(" ")
        passed = dataclasses.asdict(table[key]) if key in table else None
        lines.append({"scenario": name, "lab": lab or None, "passed": passed, "overdue": key in late})
    return json.dumps({"ok": not late, "scenarios": lines}, indent=2)


def print_overdue(console: Console, table: dict[str, Passed], now: datetime.datetime) -> None:
    """Print the scenarios that never passed or passed too long ago."""
    late = overdue(table, now)
    if late:
        console.print(f"Not passed in the last {DAYS} days (tests/passed.json):")
        for key, text in late.items():
            console.print(Text(f"  {key}: {text}"), soft_wrap=True)
