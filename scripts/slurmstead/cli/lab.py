"""Verbs of the lab, machines on this computer: demo, faults, lab up, down, freeze, thaw, status and ssh."""

import os
import pathlib
import time
from typing import Annotated

import typer

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import Plain, named
from slurmstead.errors import CheckFailed
from slurmstead.paths import LAB_INVENTORY, lab_directory
from slurmstead.wording import duration

app = typer.Typer()
lab_app = typer.Typer(help="Manage labs: virtual machines or containers on this computer.", no_args_is_help=True)
app.add_typer(lab_app, name="lab")

LabName = Annotated[
    str | None, typer.Option("--name", help="Name of the lab, if there are several.", show_default="default")
]
LabInventory = Annotated[
    pathlib.Path,
    typer.Option("--inventory", "-i", help="Inventory of the machines.", metavar="PATH", parser=named),
]
Label = Annotated[str, typer.Argument(help="Label of the snapshot, if there are several.", metavar="LABEL")]
Release = Annotated[str | None, typer.Option("--release", help="Debian release of the machines: bookworm or trixie.")]
Clean = Annotated[bool, typer.Option("--clean", help="Boot machines without preinstalled cluster packages.")]
Native = Annotated[
    bool,
    typer.Option(
        "--native", help="Start containers instead of virtual machines: as fast as this computer. Needs root."
    ),
]


@app.command()
def demo(name: LabName = None, release: Release = None, clean: Clean = False, plain: Plain = False) -> None:
    """Set up a cluster of four virtual machines and run a job on it."""
    from slurmstead.lab import machines as lab
    from slurmstead.lab.demo import Demo

    extra_vars = lab.variables(image="clean" if clean else None, release=release)
    Demo(lab.choose(name), extra_vars, plain).run(out)


@app.command()
def faults(
    name: LabName = None, as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False
) -> None:
    """Show the faults injected into a lab, and the cluster's recovery times."""
    from slurmstead.lab import faults as table
    from slurmstead.lab import machines as lab

    lines = table.load(table.result_file(lab_directory(lab.choose(name))))
    if as_json:
        print(table.to_json(lines))
    else:
        table.print_table(out, lines)
    table.check(lines)


@lab_app.command("up")
def lab_up(
    inventory: LabInventory = LAB_INVENTORY,
    name: LabName = None,
    release: Release = None,
    clean: Clean = False,
    native: Native = False,
) -> None:
    """Start the lab's machines; build their image first if it is missing."""
    from slurmstead.lab import machines as lab

    chosen = lab.choose(name, inventory)
    given = lab.variables(image="clean" if clean else None, release=release, native=native)
    lab.up(messages, inventory.absolute(), given)
    lab.print_status(out, lab.status(lab_directory(chosen)))


@lab_app.command("down")
def lab_down(inventory: LabInventory = LAB_INVENTORY, name: LabName = None) -> None:
    """Stop the machines and delete their files."""
    from slurmstead.lab import machines as lab

    chosen = lab.choose(name, inventory)
    lab.down(messages, inventory.absolute())
    if left := lab.pids(lab_directory(chosen)):
        raise CheckFailed(
            f"the lab {chosen} still has {', '.join(left)}: not in {inventory}",
            "Add them to the inventory, or give the one that they were started with (-i), and run lab down again.",
        )


@lab_app.command("freeze")
def lab_freeze(label: Label = "converged", name: LabName = None) -> None:
    """Save all machines at one instant, with disks and memory; they keep running, but connections to them end."""
    from slurmstead.lab import advice, snapshots
    from slurmstead.lab import machines as lab

    started, chosen = time.monotonic(), lab.choose(name)
    snapshots.freeze(lab_directory(chosen), label)
    took, thaw = duration(time.monotonic() - started), advice.command(f"thaw {label}", chosen)
    out.print(f"frozen as {label} in {took}; go back: {thaw}", soft_wrap=True)


@lab_app.command("thaw")
def lab_thaw(label: Label = "converged", name: LabName = None) -> None:
    """Reset all machines to the state in which they were frozen; all later changes are lost."""
    from slurmstead.lab import machines as lab
    from slurmstead.lab import snapshots

    started = time.monotonic()
    snapshots.thaw(lab_directory(lab.choose(name)), label)
    out.print(f"thawed {label} in {duration(time.monotonic() - started)}")


@lab_app.command("status")
def lab_status(name: LabName = None) -> None:
    """Show whether each machine runs and answers; exits with 1 if one does not."""
    from slurmstead.lab import advice
    from slurmstead.lab import machines as lab

    chosen = lab.choose(name)
    nodes = lab.status(lab_directory(chosen))
    if not nodes:
        raise CheckFailed(f"the lab {chosen} does not exist", f"Create it: {advice.command('up', chosen)}")
    lab.print_status(out, nodes)
    silent = [node.name for node in nodes if node.release is None]
    if silent:
        raise CheckFailed(
            f"no answer from {', '.join(silent)}", f"Start stopped machines: {advice.command('up', chosen)}"
        )


@lab_app.command("ssh")
def lab_ssh(
    node: Annotated[str, typer.Argument(help="Name of the machine.", metavar="NODE")],
    command: Annotated[list[str] | None, typer.Argument(help="Command to run on it.", metavar="COMMAND")] = None,
    name: LabName = None,
    user: Annotated[
        str | None, typer.Option("--user", "-l", help="Log in as this user.", show_default="debian")
    ] = None,
) -> None:
    """Log in to a machine, or run a command on it. Exits with ssh's exit code."""
    from slurmstead.lab import machines as lab

    arguments = lab.ssh_command(lab_directory(lab.choose(name)), node, command or [], user)
    os.execvp(arguments[0], arguments)
