"""The hardware of the workers: measured, declared, and in the next slurm.conf."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from slurmstead.errors import CheckFailed, SteadError
from slurmstead.paths import PLAYBOOKS
from slurmstead.runner import playbook
from slurmstead.runner.outcome import Result
from slurmstead.runner.progress import Progress
from slurmstead.wording import count

COLUMNS = ("measured", "declared", "slurm_conf")


@dataclasses.dataclass(frozen=True)
class Note:
    """A difference; `look` is True if the operator should check it."""

    look: bool
    text: str


@dataclasses.dataclass(frozen=True)
class Node:
    """A worker: each row has a key of slurm.conf and its value in each of COLUMNS, or None."""

    line: str | None
    rows: tuple[Mapping[str, str | None], ...]
    notes: tuple[Note, ...]
    measured: Mapping[str, Any]
    declared: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Report:
    """The reachable workers by name, with notes about all of them; `error` says why others are missing."""

    nodes: Mapping[str, Node]
    parameters: str | None
    notes: tuple[Note, ...]
    unreachable: tuple[str, ...] = ()
    error: SteadError | None = None

    @property
    def ok(self) -> bool:
        """Whether every worker answered and no difference needs checking."""
        notes = [*self.notes, *(note for node in self.nodes.values() for note in node.notes)]
        return self.error is None and not any(note.look for note in notes)

    def to_json(self) -> str:
        """Return the report as JSON."""
        fields = {
            "ok": self.ok,
            "nodes": {name: dataclasses.asdict(node) for name, node in self.nodes.items()},
            "parameters": self.parameters,
            "notes": [dataclasses.asdict(note) for note in self.notes],
            "unreachable": self.unreachable,
        }
        return json.dumps(fields, indent=2)


def _notes(notes: list[Mapping[str, Any]]) -> tuple[Note, ...]:
    # Notes that need checking come first.
    return tuple(Note(note["look"], note["text"]) for note in sorted(notes, key=lambda note: not note["look"]))


def parse(result: Result) -> Report | None:
    """Return the report of measure-hardware.yml, or None if the playbook did not get that far."""
    for debug in result.results_of("debug"):
        found = debug.get("msg")
        if isinstance(found, dict) and "nodes" in found:
            nodes = {
                name: Node(
                    line=node["line"],
                    rows=tuple(node["rows"]),
                    notes=_notes(node["notes"]),
                    measured=node["measured"],
                    declared=node["declared"],
                )
                for name, node in sorted(found["nodes"].items())
            }
            unreachable = sorted(host for host, summary in result.hosts.items() if summary.unreachable)
            return Report(nodes, found["parameters"], _notes(found["notes"]), tuple(unreachable), result.error)
    return None


def run(console: Console, inventory: pathlib.Path, *, plain: bool = False) -> Report:
    """Measure the workers of an inventory, with progress on `console`.

    :raises SteadError: no worker could be measured
    """
    with Progress(console, "measure-hardware.yml") as progress:
        result = playbook.run(PLAYBOOKS / "measure-hardware.yml", inventory, plain=plain, observer=progress)
    report = parse(result)
    if report is not None and report.nodes:
        return report
    raise result.error or CheckFailed(f"nothing was measured: {inventory} has no worker", "Add workers to it.")


def print_report(console: Console, report: Report) -> None:
    """Print for each worker a table, its line in slurm.conf and the differences."""
    for name, node in report.nodes.items():
        console.print(Text(name, style="bold"))
        _print_rows(console, node)
        if node.line:
            console.print(Text(f"  {node.line}"), soft_wrap=True)
        _print_notes(console, node.notes)
    if report.parameters:
        console.print(Text(f"SlurmdParameters={report.parameters}"), soft_wrap=True)
    _print_notes(console, report.notes)
    for name in report.unreachable:
        console.print(Text.assemble((name, "bold"), "  unreachable"))
    noteworthy = sum(any(note.look for note in node.notes) for node in report.nodes.values())
    total = count(len(report.nodes), "worker")
    console.print(f"{total} measured, {noteworthy or 'none'} to check")


def _print_rows(console: Console, node: Node) -> None:
    cells = [["", "measured", "declared", "slurm.conf"]]
    cells += [[row["key"] or "", *(row[column] or "" for column in COLUMNS)] for row in node.rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))]
    for row in cells if node.rows else []:
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print(Text(f"  {text}".rstrip()), soft_wrap=True)


def _print_notes(console: Console, notes: tuple[Note, ...]) -> None:
    for note in notes:
        mark = Text("look", style="bold red") if note.look else Text("note", style="dim")
        console.print(Text.assemble("  ", mark, f"  {note.text}"), soft_wrap=True)
