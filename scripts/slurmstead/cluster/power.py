"""Which machines can be switched, what their devices say, and what power saving did."""

import csv
import datetime
import io
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from slurmstead import rooms
from slurmstead.cluster.ask import ask
from slurmstead.errors import CheckFailed
from slurmstead.runner import playbook
from slurmstead.runner.outcome import Result

LOG = ("at", "node", "what", "why")
SAVINGS = ("node", "hours", "sleeps", "kwh", "money")
"""The columns of the two reports, as CSV and JSON name them."""

Row = Mapping[str, Any]


def switchable(inventory: pathlib.Path, nodes: Sequence[str]) -> list[str]:
    """Return the nodes for which the inventory sets power_method.

    :raises InventoryError: the inventory cannot be read
    """
    variables = playbook.listed(inventory).get("_meta", {}).get("hostvars", {})
    return [node for node in nodes if variables.get(node, {}).get("power_method")]


def lines(result: Result) -> list[str]:
    """Return a line for each machine: its name, and whether its device says that it is on."""
    found: dict[str, str] = {}
    for debug in result.results_of("debug"):
        said = debug.get("msg")
        if isinstance(said, dict) and "power" in said:
            found |= said["power"]
    width = max(map(len, found), default=0)
    return [f"{name:<{width}}  {power}" for name, power in sorted(found.items())]


def missed(result: Result) -> dict[str, list[str]]:
    """Return the commands that machines missed while they slept, and for each the machines.

    A machine may lack the MUNGE key, without which it cannot be upgraded, so `up` comes first.
    """
    lacks = {name: what for one in result.results_of("power_missed") for name, what in one.get("missed", {}).items()}
    covers = rooms.module("power.missed").COVERS
    found = {verb: [name for name in lacks if set(lacks[name]) & set(covered)] for verb, covered in covers.items()}
    return {verb: names for verb, names in found.items() if names}


def proof_lines(result: Result) -> list[str]:
    """Return what the test of a machine measured; the state of its supply if it did not get that far."""
    for debug in result.results_of("debug"):
        said = debug.get("msg")
        if isinstance(said, dict) and "proof" in said:
            return _proof(said["proof"])
    return lines(result)


def _proof(found: Row) -> list[str]:
    node, timeouts = found["node"], found["timeouts"]
    told = [f"{node}: off after {found['off']:.0f} s, ready for jobs {found['on']:.0f} s after it was switched on"]
    if found["supply"] is None:
        told.append(f"{node}: its device cannot tell whether it is on; only the network showed that it was off")
    if not found["by_control"]:
        told.append(f"{node}: was shut down from this computer; control can do it after an `up` with power_idle")
    words = ", ".join(f"{key}={value}" for key, value in timeouts.items())
    return [*told, f"Remembered in hardware/{node}.yml; if machines sleep, the next `up` sets {words}"]


def journal(console: Console, inventory: pathlib.Path, nodes: Sequence[str], days: float, *, plain: bool) -> Row:
    """Return what the module power_journal returns, with progress on `console`.

    :raises SteadError: control could not be asked, or no machine has ever been put to sleep
    """
    found = ask(
        *(console, "show-power-log.yml", inventory, "power_journal", "exists"),
        unasked=CheckFailed(f"{inventory} has no control node", "Add it to the group control."),
        extra_vars={"shown_nodes": ",".join(nodes), "power_log_days": str(days)},
        plain=plain,
    )
    if not found["exists"]:
        raise CheckFailed("control has no log of power saving", "Nothing sleeps until power_idle is set.")
    return found


def events(found: Row) -> list[dict[str, str]]:
    """Return the events of a journal with times of this computer's time zone."""
    return [{**one, "at": _time(one["at"])} for one in found["events"]]


def _time(at: float) -> str:
    return datetime.datetime.fromtimestamp(at).astimezone().isoformat(" ", "seconds")


def total(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the sum of savings; kWh and money are of the machines for which they are known.

    >>> total([{"hours": 2.5, "sleeps": 1, "kwh": 0.25, "money": None}, {"hours": 1.0, "sleeps": 1, "kwh": None}])
    {'node': 'all', 'hours': 3.5, 'sleeps': 2, 'kwh': 0.25, 'money': None}
    """
    rows = list(rows)
    sums = {}
    for key, digits in (("hours", 2), ("sleeps", 0), ("kwh", 3), ("money", 2)):
        known = [row[key] for row in rows if row.get(key) is not None]
        sums[key] = (round(sum(known), digits) if digits else sum(known)) if known else None
    return {"node": "all", **sums}


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return rows as CSV with a header; what is unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def table(columns: Sequence[str], rows: Iterable[Row]) -> list[str]:
    """Return aligned lines, numbers on the right.

    >>> table(("node", "hours"), [{"node": "n1", "hours": 2.0}, {"node": "n2", "hours": None}])
    ['node  hours', 'n1      2.0', 'n2        -']
    """
    cells = [[(column, False) for column in columns]]
    cells += [
        [
            ("-", True) if (value := row[column]) is None else (str(value), not isinstance(value, str))
            for column in columns
        ]
        for row in rows
    ]
    widths = [max(len(line[index][0]) for line in cells) for index in range(len(columns))]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width) for (text, right), width in zip(line, widths, strict=True)
        ).rstrip()
        for line in cells
    ]
