"""The verb that finds new machines: stead discover."""

import difflib
import sys
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import Inventory, Plain
from slurmstead.errors import UsageError

app = typer.Typer()


@app.command()
def discover(
    inventory: Inventory,
    machines: Annotated[
        list[str] | None,
        typer.Argument(
            help="New machines to add, by address or MAC; without them, all that accept a login.",
            metavar="ADDRESS[=NAME]",
        ),
    ] = None,
    user: Annotated[
        str, typer.Option(help="The account to try on new machines.", show_default="the inventory's, then root")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and write nothing.")] = False,
    plain: Plain = False,
) -> None:
    """Find machines that the inventory does not know, and add them to hosts.yml. Changes no machine."""
    from slurmstead.cluster import discover as work
    from slurmstead.cluster import operations
    from slurmstead.runner import playbook
    from slurmstead.site import file, hosts

    found = work.run(messages, inventory, user=user, plain=plain)
    if as_json:
        print(found.to_json())
        return
    work.print_found(out, found)
    wanted = work.chosen(found, machines or [])
    if not wanted:
        if any(machine["host_key"] and not machine["refused"] for machine in found.new):
            out.print("To add one that accepts no login: scripts/stead discover ADDRESS")
        return
    listed = playbook.listed(inventory)
    groups = operations.grouped(listed)
    made = work.workers(wanted, found, listed, groups["workers"])
    additions = [hosts.Addition(one.name, one.variables, one.comments) for one in made]
    if not inventory.is_file():
        raise UsageError(f"{inventory} is not a file, so nothing can be added", "Give your hosts.yml with -i.")
    before = file.read(inventory)
    try:
        after = hosts.edited(before, additions)
    except ValueError as error:
        raise UsageError(f"{inventory} cannot be changed: {error}", "Add the machines yourself.") from None
    for line in list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:]:
        out.print(Text(line), soft_wrap=True)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("nothing was written, because no one can be asked here", "Add --yes.")
        if not typer.confirm(f"Write this to {inventory}?"):
            out.print("Nothing was written.")
            return
    file.replace(inventory, before, after)
    out.print(Text(f"{inventory}: written. Next:"), soft_wrap=True)
    for number, step in enumerate(work.next_steps(made, wanted, groups["control"][0]), 1):
        out.print(Text(f"  {number}. {step}"), soft_wrap=True)
