"""The table of last passes: tests/passed.json, with one line for each scenario and lab."""

import dataclasses
import datetime
import json
import os
import pathlib

from slurmstead.errors import CheckFailed
from slurmstead.testing.outcome import Outcome
from slurmstead.testing.scenarios import CHECKS, NATIVE, SCENARIOS

DAYS = 30
"""Days after which a scenario must be run again."""


@dataclasses.dataclass(frozen=True)
class Passed:
    """When a scenario last passed (UTC, ISO 8601), at which commit, in how many seconds, with how many tests."""

    at: str
    commit: str
    seconds: int
    tests: int

    def days(self, now: datetime.datetime) -> float:
        """Return the days since the scenario passed."""
        return (now - datetime.datetime.fromisoformat(self.at)) / datetime.timedelta(days=1)


def keys() -> list[str]:
    """Return the lines that a complete table has."""
    return [CHECKS, NATIVE, *(scenario.key for scenario in SCENARIOS)]


def load(path: pathlib.Path) -> dict[str, Passed]:
    """Return the lines of the table by their key; a table that does not exist is empty.

    :raises CheckFailed: the file is not such a table
    """
    try:
        return {key: Passed(**line) for key, line in json.loads(path.read_text()).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise CheckFailed(
            f"expected the table of passed scenarios in {path}, found: {error}",
            f"Resolve the merge conflict in it, or restore it: git checkout -- {path}",
        ) from None


def to_text(table: dict[str, Passed]) -> str:
    """Return the table as JSON, sorted, one line for each scenario, so that git can merge it."""
    lines = [f"{json.dumps(key)}: {json.dumps(dataclasses.asdict(line))}" for key, line in sorted(table.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def note(path: pathlib.Path, key: str, outcome: Outcome, commit: str, now: datetime.datetime) -> None:
    """Record that a scenario passed; it is on the disk when the call returns."""
    line = Passed(now.isoformat(timespec="minutes"), commit, round(outcome.seconds), outcome.tests)
    # Lines of scenarios that no longer exist are removed.
    table = {known: kept for known, kept in load(path).items() if known in keys()} | {key: line}
    new = path.with_suffix(".new")
    with new.open("w") as file:
        file.write(to_text(table))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def overdue(table: dict[str, Passed], now: datetime.datetime) -> dict[str, str]:
    """Return the lines that have not passed within DAYS, each with the reason."""
    found = {}
    for key in keys():
        if key not in table:
            found[key] = "never passed"
        elif table[key].days(now) > DAYS:
            found[key] = f"last passed {table[key].days(now):.0f} days ago"
    return found
