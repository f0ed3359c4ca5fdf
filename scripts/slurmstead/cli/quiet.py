"""Verbs for quiet nodes: stead quiet measure."""

import json
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import Inventory, Plain
from slurmstead.errors import CheckFailed

app = typer.Typer()
quiet = typer.Typer(help="Compare the nodes on which a job is alone.")
app.add_typer(quiet, name="quiet")


@quiet.callback()
def _group() -> None:
    """Keep `measure` a verb of its own: typer would merge a single command with its group."""


@quiet.command()
def measure(
    inventory: Inventory,
    times: Annotated[int, typer.Option(help="How often the benchmark is run on each node.", min=2)] = 20,
    deadline: Annotated[int, typer.Option(help="Minutes to wait for the jobs; busy nodes are named.", min=1)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the seconds of each run as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Run a fixed benchmark on each quiet node, and name the node that does not match the others."""
    from slurmstead.cluster import quiet as measuring

    report = measuring.run(messages, inventory.absolute(), times=times, seconds=60 * deadline, plain=plain)
    if as_json:
        print(json.dumps({"ok": report.ok, "lines": report.lines, "nodes": report.answers}, indent=2))
    else:
        for line in report.lines:
            out.print(Text(line), soft_wrap=True)
    if not report.ok:
        raise CheckFailed("a quiet node does not match the others, or was not measured", "See docs/quiet.md.")
