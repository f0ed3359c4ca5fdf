"""The verbs of scripts/stead and their options."""

import errno
import os
import pathlib
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from slurmstead import operation_verbs, power_verbs
from slurmstead.client.verbs import register
from slurmstead.errors import CheckFailed, ExitCode, Interrupted, InventoryError, MachineError, SteadError, UsageError
from slurmstead.options import Check, Inventory, Plain
from slurmstead.paths import CLUSTER_INVENTORY, LAB_INVENTORY, PLAYBOOKS, SITE, lab_directory

if TYPE_CHECKING:
    from slurmstead.outcome import Result

EPILOG = (
    "Exit codes: 0 good, 1 a check failed, 2 wrong usage or inventory, 3 a host could not be reached, "
    "4 a task failed, 130 interrupted."
)

app = typer.Typer(
    help="Turns machines into a Slurm cluster, rehearses it on virtual machines, and gives it work.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
lab_app = typer.Typer(help="Virtual machines on this computer, as inventory/lab describes them.", no_args_is_help=True)
app.add_typer(lab_app, name="lab")

NO_TEMPORARY = "No usable temporary directory"
"""What Python's tempfile says where it can write to none."""

out = Console(highlight=False)
progress_console = Console(stderr=True, highlight=False)

LabName = Annotated[str | None, typer.Option("--name", help="Which lab, if there are several.", show_default="default")]
LabInventory = Annotated[pathlib.Path, typer.Option("--inventory", "-i", help="The inventory of the machines.")]
Release = Annotated[str | None, typer.Option("--release", help="Debian of the machines: bookworm or trixie.")]
Clean = Annotated[
    bool, typer.Option("--clean", help="Boot machines on which no package of the cluster is installed yet.")
]
Limit = Annotated[str | None, typer.Option(help="Work on these hosts only.", metavar="HOSTS")]
Tags = Annotated[str | None, typer.Option(help="Run the tasks with these tags only.", metavar="TAGS")]


@app.command()
def demo(name: LabName = None, release: Release = None, clean: Clean = False, plain: Plain = False) -> None:
    """Go from nothing to a job on a cluster of four virtual machines."""
    from slurmstead import lab
    from slurmstead.demo import Demo

    extra_vars = lab.variables(image="clean" if clean else None, release=release)
    Demo(lab.choose(name), extra_vars, plain).run(out)


@app.command()
def test(
    fast: Annotated[bool, typer.Option("--fast", help="Only what needs no virtual machine; under a minute.")] = False,
) -> None:
    """Run all tests of this repository."""
    from slurmstead import testing

    testing.run(out, fast=fast)


@app.command()
def faults(
    name: LabName = None, as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False
) -> None:
    """Show which faults a lab was made to suffer, and how long the cluster took to recover."""
    from slurmstead import faults as table
    from slurmstead import lab

    lines = table.load(table.result_file(lab_directory(lab.choose(name))))
    if as_json:
        print(table.to_json(lines))
    else:
        table.print_table(out, lines)
    table.check(lines)


@app.command()
def up(
    inventory: Inventory = CLUSTER_INVENTORY,
    limit: Limit = None,
    tags: Tags = None,
    check: Check = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show how files change.")] = False,
    plain: Plain = False,
) -> None:
    """Make the machines of an inventory one cluster (site.yml)."""
    _carry_out(SITE, inventory, limit=limit, tags=tags, check=check, diff=diff, plain=plain)


@app.command()
def drift(
    inventory: Inventory = CLUSTER_INVENTORY, limit: Limit = None, tags: Tags = None, plain: Plain = False
) -> None:
    """Say what `up` would change, and change nothing; 1 if there is something."""
    result = _carry_out(SITE, inventory, limit=limit, tags=tags, check=True, diff=True, plain=plain)
    changed = [host for host, summary in sorted(result.hosts.items()) if summary.changed]
    if changed:
        raise CheckFailed(f"{', '.join(changed)} would be changed", "`up` with the same options does it.")


def _carry_out(path: pathlib.Path, inventory: pathlib.Path, **options: Any) -> "Result":
    """Run a playbook on a cluster and print what it did on each host; options as of `playbook.run`."""
    from slurmstead import playbook
    from slurmstead.progress import Progress, print_summary

    with Progress(progress_console, path.name) as progress:
        result = playbook.run(path, inventory.absolute(), observer=progress, **options)
    error = result.error
    if error is None and not result.hosts:
        error = InventoryError(
            f"{inventory} has no host that {path.name} works on", "Name hosts in it, and one in --limit."
        )
    if not isinstance(error, UsageError):
        print_summary(out, result)
    if error:
        raise error
    return result


@app.command()
def doctor(
    inventory: Inventory = CLUSTER_INVENTORY,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Check all machines of a cluster: a line for each thing that is wrong, and what to do. Changes nothing."""
    from slurmstead import doctor as visit

    report = visit.run(progress_console, inventory.absolute(), plain=plain)
    if as_json:
        print(report.to_json())
    else:
        visit.print_report(out, report)
    if report.error:
        raise report.error


@app.command()
def smoke(
    inventory: Inventory = CLUSTER_INVENTORY,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Test a cluster as its users see it: one line for each check."""
    from slurmstead import smoke as smoke_test

    report = smoke_test.run(progress_console, inventory.absolute(), plain=plain)
    if as_json:
        print(report.to_json())
    else:
        smoke_test.print_report(out, report)
    if not report.ok:
        raise CheckFailed("the cluster does not do what a user expects of it", "Each failed check says what to do.")


@app.command()
def hardware(
    inventory: Inventory = CLUSTER_INVENTORY,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Show what the workers are, what is declared of them, and what slurm.conf will say. Changes nothing."""
    from slurmstead import hardware as measuring

    report = measuring.run(progress_console, inventory.absolute(), plain=plain)
    if as_json:
        print(report.to_json())
    else:
        measuring.print_report(out, report)
    if report.error:
        raise report.error
    if not report.ok:
        raise CheckFailed("the hardware differs from what is declared or remembered", "Each line with `look` says how.")


@app.command()
def backup(
    inventory: Inventory = CLUSTER_INVENTORY,
    output: Annotated[
        pathlib.Path | None,
        typer.Option(help="The archive.", metavar="FILE", show_default="CLUSTER-TIME.tar.gz in your state directory"),
    ] = None,
    plain: Plain = False,
) -> None:
    """Write the queue, the MUNGE key and the configuration of a cluster into one archive. Jobs do not notice."""
    from slurmstead import backup as archives

    archives.print_report(out, archives.run(progress_console, inventory.absolute(), output, plain=plain))


@app.command()
def restore(
    archive: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="What `stead backup` wrote.")],
    inventory: Inventory = CLUSTER_INVENTORY,
    force: Annotated[bool, typer.Option("--force", help="Give up the jobs that the control node has now.")] = False,
    plain: Plain = False,
) -> None:
    """Make a cluster of an archive, onto a fresh control node too: `up`, with the queue and the key of then."""
    if not archive.is_file():
        raise UsageError(f"there is no archive {archive}", "Name a file that `stead backup` wrote.")
    extra_vars = {"restore_archive": str(archive.absolute()), "restore_force": str(force)}
    _carry_out(PLAYBOOKS / "restore-cluster.yml", inventory, extra_vars=extra_vars, plain=plain)


@app.command()
def rotate_key(inventory: Inventory = CLUSTER_INVENTORY, plain: Plain = False) -> None:
    """Give all nodes another MUNGE key. Jobs that run go on; none starts for the moment of change."""
    _carry_out(PLAYBOOKS / "rotate-key.yml", inventory, plain=plain)


operation_verbs.register(app, out, progress_console)
power_verbs.register(app, out, progress_console)
register(app, out, progress_console)


@lab_app.command("up")
def lab_up(
    inventory: LabInventory = LAB_INVENTORY, name: LabName = None, release: Release = None, clean: Clean = False
) -> None:
    """Start the machines that do not run; build their image first if there is none."""
    from slurmstead import lab

    chosen = lab.choose(name, inventory)
    lab.up(progress_console, inventory.absolute(), lab.variables(image="clean" if clean else None, release=release))
    lab.print_status(out, lab.status(lab_directory(chosen)))


@lab_app.command("down")
def lab_down(inventory: LabInventory = LAB_INVENTORY, name: LabName = None) -> None:
    """End the machines and remove their files."""
    from slurmstead import lab

    lab.choose(name, inventory)
    lab.down(progress_console, inventory.absolute())


@lab_app.command("status")
def lab_status(name: LabName = None) -> None:
    """Say of each machine whether it runs and answers; 1 if one does not."""
    from slurmstead import lab

    chosen = lab.choose(name)
    nodes = lab.status(lab_directory(chosen))
    if not nodes:
        raise CheckFailed(f"the lab {chosen} does not exist", "Make it: scripts/stead lab up")
    lab.print_status(out, nodes)
    silent = [node.name for node in nodes if node.release is None]
    if silent:
        raise CheckFailed(f"no answer from {', '.join(silent)}", "Start what does not run: scripts/stead lab up")


@lab_app.command("ssh")
def lab_ssh(
    node: Annotated[str, typer.Argument(help="Name of the machine.", metavar="NODE")],
    command: Annotated[list[str] | None, typer.Argument(help="What to run there.", metavar="COMMAND")] = None,
    name: LabName = None,
    user: Annotated[
        str | None, typer.Option("--user", "-l", help="Log in as somebody else.", show_default="debian")
    ] = None,
) -> None:
    """Log in to a machine, or run a command on it; the exit code is then ssh's."""
    from slurmstead import lab

    arguments = lab.ssh_command(lab_directory(lab.choose(name)), node, command or [], user)
    os.execvp(arguments[0], arguments)


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


def _say(error: SteadError) -> int:
    progress_console.print(Text(f"stead: {error}", style="bold red"), soft_wrap=True)
    if error.hint:
        progress_console.print(Text(f"       {error.hint}"), soft_wrap=True)
    return error.code


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    # The launcher's way of finding this package is nothing for child processes.
    os.environ.pop("PYTHONPATH", None)
    try:
        app(sys.argv[1:] if arguments is None else arguments, prog_name="stead")
    except SteadError as error:
        return _say(error)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or NO_TEMPORARY in str(error):
            return _say(MachineError(f"this computer has no room: {error}", "Make some, then call again."))
        raise
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.USAGE
    return ExitCode.OK
