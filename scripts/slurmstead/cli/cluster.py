"""Verbs that work on a whole cluster: up, drift, doctor, smoke, hardware, backup, restore, rotate-key, upgrade."""

import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import Check, Inventory, Limit, Plain, Tags
from slurmstead.errors import CheckFailed, InventoryError, UsageError
from slurmstead.paths import PLAYBOOKS, SITE

if TYPE_CHECKING:
    from slurmstead.runner.outcome import Result

app = typer.Typer()


@app.command()
def up(
    inventory: Inventory,
    limit: Limit = None,
    tags: Tags = None,
    check: Check = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show how files change.")] = False,
    plain: Plain = False,
) -> None:
    """Make the machines of an inventory one cluster (site.yml)."""
    _carry_out(SITE, inventory, limit=limit, tags=tags, check=check, diff=diff, plain=plain)


@app.command()
def drift(inventory: Inventory, limit: Limit = None, tags: Tags = None, plain: Plain = False) -> None:
    """Say what `up` would change, and change nothing; 1 if there is something."""
    result = _carry_out(SITE, inventory, limit=limit, tags=tags, check=True, diff=True, plain=plain)
    changed = [host for host, summary in sorted(result.hosts.items()) if summary.changed]
    if changed:
        raise CheckFailed(f"{', '.join(changed)} would be changed", "`up` with the same options does it.")


@app.command()
def doctor(
    inventory: Inventory,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Check all machines of a cluster: a line for each problem, and what to do. Changes nothing."""
    from slurmstead.cluster import doctor as visit

    report = visit.run(messages, inventory.absolute(), plain=plain)
    if as_json:
        print(report.to_json())
    else:
        visit.print_report(out, report)
    if report.error:
        raise report.error


@app.command()
def smoke(
    inventory: Inventory,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Test a cluster as its users see it: one line for each check."""
    from slurmstead.cluster import smoke as smoke_test

    report = smoke_test.run(messages, inventory.absolute(), plain=plain)
    if as_json:
        print(report.to_json())
    else:
        smoke_test.print_report(out, report)
    if not report.ok:
        raise CheckFailed("the cluster does not do what a user expects of it", "Each failed check says what to do.")


@app.command()
def hardware(
    inventory: Inventory,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Show what the workers are, what is declared of them, and what slurm.conf will say. Changes nothing."""
    from slurmstead.cluster import hardware as measuring

    report = measuring.run(messages, inventory.absolute(), plain=plain)
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
    inventory: Inventory,
    output: Annotated[
        pathlib.Path | None,
        typer.Option(help="The archive.", metavar="FILE", show_default="CLUSTER-TIME.tar.gz in your state directory"),
    ] = None,
    plain: Plain = False,
) -> None:
    """Write the queue, the MUNGE key and the configuration of a cluster into one archive. Jobs do not notice."""
    from slurmstead.cluster import backup as archives

    archives.print_report(out, archives.run(messages, inventory.absolute(), output, plain=plain))


@app.command()
def restore(
    archive: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="What `stead backup` wrote.")],
    inventory: Inventory,
    force: Annotated[bool, typer.Option("--force", help="Give up the jobs that the control node has now.")] = False,
    plain: Plain = False,
) -> None:
    """Make a cluster of an archive, onto a fresh control node too: `up`, with the queue and the key of then."""
    if not archive.is_file():
        raise UsageError(f"there is no archive {archive}", "Name a file that `stead backup` wrote.")
    extra_vars = {"restore_archive": str(archive.absolute()), "restore_force": str(force)}
    _carry_out(PLAYBOOKS / "restore-cluster.yml", inventory, extra_vars=extra_vars, plain=plain)


@app.command()
def rotate_key(inventory: Inventory, plain: Plain = False) -> None:
    """Give all nodes another MUNGE key. Jobs that run go on; none starts for the moment of change."""
    _carry_out(PLAYBOOKS / "rotate-key.yml", inventory, plain=plain)


@app.command()
def upgrade(
    inventory: Inventory,
    limit: Annotated[str | None, typer.Option(help="Work on these hosts only.", metavar="HOSTS")] = None,
    at_once: Annotated[
        int | None,
        typer.Option(help="How many workers at the same time, after the first.", min=1, show_default="a quarter"),
    ] = None,
    check: Check = False,
    plain: Plain = False,
) -> None:
    """Upgrade the packages of all machines, control first, then the workers. Jobs go on."""
    from slurmstead.cluster import operations
    from slurmstead.cluster import upgrade as upgrading

    variables = {"upgrade_at_once": str(at_once) if at_once else None}
    operations.run(
        *(out, messages, "upgrade-cluster.yml", inventory),
        limit=limit,
        extra_vars=variables,
        check=check,
        plain=plain,
        report=lambda result: upgrading.print_report(out, messages, result, check=check),
    )


def _carry_out(path: pathlib.Path, inventory: pathlib.Path, **options: Any) -> "Result":
    """Run a playbook on a cluster and print what it did on each host; options as of `playbook.run`."""
    from slurmstead.runner import playbook
    from slurmstead.runner.progress import Progress, print_summary

    with Progress(messages, path.name) as progress:
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
