"""Verbs that switch machines on and off: stead power status, on, off, cycle."""

import pathlib
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import CancelJobs, Deadline, Inventory, Plain, WhenIdle, fate
from slurmstead.errors import UsageError

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
    """Switch machines on, wait until they answer, and let jobs start on them."""
    _switch("on", inventory, nodes, {"switched_deadline": str(deadline)}, plain)


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
    _switch("on", inventory, nodes, {}, plain)


def _switch(state: str, inventory: pathlib.Path, nodes: Sequence[str], variables: dict[str, str], plain: bool) -> None:
    _run("switch-power.yml", inventory, nodes, {"switched_to": state, **variables}, plain)


def _run(name: str, inventory: pathlib.Path, nodes: Sequence[str], variables: dict[str, str], plain: bool) -> None:
    """Run a playbook on these workers and print whether each is on.

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
    operations.run(
        *(out, messages, name, inventory),
        extra_vars={"switched_nodes": ",".join(able), **variables},
        plain=plain,
        report=lambda result: out.print(Text("\n".join(switching.lines(result)))),
    )
