"""The verb that writes an image to a module: stead flash."""

import pathlib
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import Inventory, Plain
from slurmstead.errors import UsageError

app = typer.Typer()


@app.command()
def flash(
    name: Annotated[
        str, typer.Argument(help="A host with power_method: turing_pi.", metavar="NODE", show_default=False)
    ],
    image: Annotated[
        pathlib.Path, typer.Argument(help="Made by `stead image board`.", metavar="IMAGE", show_default=False)
    ],
    inventory: Inventory,
    yes: Annotated[str, typer.Option(help="The name of the node again, instead of the question.", metavar="NODE")] = "",
    direct: Annotated[
        bool, typer.Option("--direct", help="Reach the BMC from this computer, not through control.")
    ] = False,
    deadline: Annotated[int, typer.Option(help="Minutes to wait until the new system has ssh.", min=1)] = 15,
    plain: Plain = False,
) -> None:
    """Overwrite the disk of a module on a Turing Pi 2 with an image, and start it."""
    from slurmstead.cluster import board, operations
    from slurmstead.runner import playbook

    listed = playbook.listed(inventory)
    groups = operations.grouped(listed)
    board.check(name, image, inventory, listed)
    if not yes:
        messages.print(Text(f"All that is on the disk of {name} will be lost; no program can see whether it is blank."))
        yes = typer.prompt(f"Type {name} to overwrite it", default="", show_default=False, err=True)
    if yes != name:
        raise UsageError(f"expected {name}, got {yes!r}; nothing was written")
    control = "" if direct or name in groups["control"] else next(iter(groups["control"]), "")
    key = board.flash(out, messages, inventory, name, image, control, deadline=deadline, plain=plain)
    for line in board.lines(name, key, name in operations.workers_alone(groups)):
        out.print(Text(line), soft_wrap=True)
