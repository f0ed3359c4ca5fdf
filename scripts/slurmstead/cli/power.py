"""Verbs that switch machines on and off, and report what power saving did."""

import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import CancelJobs, Deadline, Inventory, Plain, WhenIdle, fate
from slurmstead.errors import UsageError
from slurmstead.paths import SITE

if TYPE_CHECKING:
    from slurmstead.runner.outcome import Result

app = typer.Typer()
power = typer.Typer(help="Switch machines on and off by their BMC, plug, magic packet or your own commands.")
app.add_typer(power, name="power")

Nodes = Annotated[
    list[str], typer.Argument(help="Workers that have power_method.", metavar="NODE...", show_default=False)
]


@power.command()
def status(
    inventory: Inventory,
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Workers; without names, all that have power_method.", metavar="NODE")
    ] = None,
    plain: Plain = False,
) -> None:
    """Ask the devices whether machines are on."""
    _run("show-power.yml", inventory, nodes or [], {}, plain)


@power.command()
def on(
    nodes: Nodes,
    inventory: Inventory,
    deadline: Annotated[int, typer.Option(help="Minutes to wait for each machine.", min=0)] = 10,
    plain: Plain = False,
) -> None:
    """Switch machines on, wait until they answer, and let jobs start on them.

    Does first what they missed while they slept.
    """
    _switch_on(inventory, nodes, {"switched_deadline": str(deadline)}, plain)


@power.command()
def off(
    nodes: Nodes,
    inventory: Inventory,
    when_idle: WhenIdle = False,
    cancel_jobs: CancelJobs = False,
    deadline: Deadline = 60,
    plain: Plain = False,
) -> None:
    """Take machines out of service, shut them down, then cut their supply."""
    jobs = {"switched_jobs": fate(when_idle, cancel_jobs), "switched_deadline": str(deadline)}
    _switch("off", inventory, nodes, jobs, plain)


@power.command()
def cycle(
    nodes: Nodes,
    inventory: Inventory,
    when_idle: WhenIdle = False,
    cancel_jobs: CancelJobs = False,
    deadline: Deadline = 60,
    plain: Plain = False,
) -> None:
    """Switch machines off as `off` does, then on as `on` does."""
    jobs = {"switched_jobs": fate(when_idle, cancel_jobs), "switched_deadline": str(deadline)}
    _switch("off", inventory, nodes, jobs, plain)
    _switch_on(inventory, nodes, {}, plain)


@power.command()
def test(
    node: Annotated[str, typer.Argument(help="A worker that has power_method.", metavar="NODE", show_default=False)],
    inventory: Inventory,
    when_idle: WhenIdle = False,
    cancel_jobs: CancelJobs = False,
    deadline: Deadline = 60,
    boot: Annotated[int, typer.Option(help="Minutes that the machine may take to boot.", min=1)] = 15,
    plain: Plain = False,
) -> None:
    """Switch a machine off and on to prove that its method works, and remember how long it takes."""
    from slurmstead.cluster import power as switching

    jobs = {"switched_jobs": fate(when_idle, cancel_jobs), "switched_deadline": str(deadline)}
    variables = {**jobs, "test_deadline": str(60 * boot)}
    _run("test-power.yml", inventory, [node], variables, plain, report=switching.proof_lines)


Days = Annotated[float, typer.Option(help="How many days to look back.", min=0)]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Shown = Annotated[list[str] | None, typer.Argument(help="Workers; without names, all.", metavar="NODE")]


@power.command()
def log(
    inventory: Inventory,
    nodes: Shown = None,
    days: Days = 7,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Show what power saving did to machines, and why. Changes nothing."""
    from slurmstead.cluster import power as saving

    found = _journal(inventory, nodes or [], days, as_csv and as_json, plain)
    rows = saving.events(found)
    if as_csv or as_json:
        print(json.dumps(rows, indent=2) if as_json else saving.as_csv(saving.LOG, rows).rstrip())
    else:
        for row in rows:
            out.print(Text("  ".join(filter(None, row.values()))), soft_wrap=True)
    if not rows:
        messages.print(f"Nothing was done in the last {days:g} days.")
    if found["left_out"]:
        messages.print(f"{found['left_out']} older events are left out; use a smaller --days")


@power.command()
def savings(
    inventory: Inventory,
    nodes: Shown = None,
    days: Days = 30,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Show how long machines slept, and what that saved (power_watts, power_price). Changes nothing."""
    from slurmstead.cluster import power as saving

    rows = list(_journal(inventory, nodes or [], days, as_csv and as_json, plain)["savings"])
    if as_json:
        print(json.dumps({"days": days, "nodes": rows, "total": saving.total(rows)}, indent=2))
    elif as_csv:
        print(saving.as_csv(saving.SAVINGS, rows).rstrip())
    else:
        out.print(Text("\n".join(saving.table(saving.SAVINGS, [*rows, saving.total(rows)]))), soft_wrap=True)


def _journal(inventory: pathlib.Path, nodes: Sequence[str], days: float, both: bool, plain: bool) -> Mapping[str, Any]:
    """Return the journal of these workers; former workers can be in it.

    :raises UsageError: a name is neither in it nor that of a worker
    """
    from slurmstead.cluster import operations
    from slurmstead.cluster import power as saving

    if both:
        raise UsageError("--csv and --json cannot be used together", "Use one of them.")
    found = saving.journal(messages, inventory.absolute(), nodes, days, plain=plain)
    known = {row["node"] for row in (*found["events"], *found["savings"])}
    strangers = [node for node in nodes if node not in known]
    if strangers:
        operations.check_names(strangers, operations.groups(inventory), inventory)
    return found


def _switch(
    state: str, inventory: pathlib.Path, nodes: Sequence[str], variables: dict[str, str], plain: bool
) -> "Result":
    return _run("switch-power.yml", inventory, nodes, {"switched_to": state, **variables}, plain)


def _switch_on(inventory: pathlib.Path, nodes: Sequence[str], variables: dict[str, str], plain: bool) -> None:
    """Switch machines on, then run the commands that they missed while they slept."""
    from slurmstead.cluster import operations
    from slurmstead.cluster import power as switching

    result = _switch("on", inventory, nodes, variables, plain)
    found = operations.groups(inventory)
    playbooks = {"up": str(SITE), "upgrade": "upgrade-cluster.yml"}
    for verb, names in switching.missed(result).items():
        limit = ",".join(operations.around(name, found) for name in names)
        messages.print(Text(f"{', '.join(names)} slept through `{verb}`, which is done there now"), soft_wrap=True)
        operations.run(*(out, messages, playbooks[verb], inventory), limit=limit, plain=plain)


def _run(
    name: str,
    inventory: pathlib.Path,
    nodes: Sequence[str],
    variables: dict[str, str],
    plain: bool,
    report: "Callable[[Result], list[str]] | None" = None,
) -> "Result":
    """Run a playbook on these workers and print a report, or whether each is on.

    :raises UsageError: a name is not a worker, or its machine cannot be switched
    """
    from slurmstead.cluster import operations
    from slurmstead.cluster import power as switching

    found = operations.groups(inventory)
    operations.check_names(nodes, found, inventory)
    able = switching.switchable(inventory, nodes or operations.workers_alone(found))
    unable = [node for node in nodes if node not in able]
    if unable or not able:
        what = f"{unable[0]} has" if unable else "no worker has"
        raise UsageError(f"{what} no power_method in {inventory}", "See docs/power.md.")
    return operations.run(
        *(out, messages, name, inventory),
        extra_vars={"switched_nodes": ",".join(able), **variables},
        plain=plain,
        report=lambda result: out.print(Text("\n".join((report or switching.lines)(result))), soft_wrap=True),
    )
