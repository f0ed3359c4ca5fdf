"""Verbs that work on a whole cluster.

They are up, drift, doctor, smoke, hardware, backup, restore, rotate-key, move-share and upgrade.
"""

import json
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import (
    CancelJobs,
    Check,
    Deadline,
    Inventory,
    Limit,
    Plain,
    Tags,
    Wake,
    WhenIdle,
    fate,
    woken,
)
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
    diff: Annotated[bool, typer.Option("--diff", help="Show the changes in files.")] = False,
    keep_jobs: Annotated[
        bool, typer.Option("--keep-jobs", help="Do not cancel the jobs of users who left the inventory.")
    ] = False,
    wake: Wake = False,
    plain: Plain = False,
) -> None:
    """Turn the machines of an inventory into one cluster (site.yml)."""
    variables = {**({"accounts_keep_jobs": "true"} if keep_jobs else {}), **woken(wake)}
    options: dict[str, Any] = {"limit": limit, "tags": tags, "check": check, "diff": diff, "plain": plain}
    _carry_out(SITE, inventory, extra_vars=variables, **options)


@app.command()
def drift(inventory: Inventory, limit: Limit = None, tags: Tags = None, plain: Plain = False) -> None:
    """Show what `up` would change. Changes nothing; exits with 1 if anything differs."""
    result = _carry_out(SITE, inventory, limit=limit, tags=tags, check=True, diff=True, plain=plain)
    changed = [host for host, summary in sorted(result.hosts.items()) if summary.changed]
    if changed:
        raise CheckFailed(
            f"{', '.join(changed)} would be changed", "To apply the changes, run `up` with the same options."
        )


@app.command()
def doctor(
    inventory: Inventory,
    job: Annotated[
        str | None, typer.Option(help="Explain instead why this job waits.", metavar="NUMBER", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Check all machines of a cluster: one line per problem, with what to do. Changes nothing."""
    from slurmstead.cluster import doctor as visit

    if job is not None:
        told = visit.explain(messages, inventory.absolute(), job, plain=plain)
        print(json.dumps({"lines": told.lines, "hopeless": told.hopeless}) if as_json else "\n".join(told.lines))
        if told.error:
            raise told.error
        return
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
    """Test a cluster from a user's point of view. Prints one line per check."""
    from slurmstead.cluster import smoke as smoke_test

    report = smoke_test.run(messages, inventory.absolute(), plain=plain)
    if as_json:
        print(report.to_json())
    else:
        smoke_test.print_report(out, report)
    if not report.ok:
        raise CheckFailed("the smoke test failed", "Follow the hint of each failed check above.")


@app.command()
def hardware(
    inventory: Inventory,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    plain: Plain = False,
) -> None:
    """Compare the measured hardware of the workers with the inventory and slurm.conf. Changes nothing."""
    from slurmstead.cluster import hardware as measuring

    report = measuring.run(messages, inventory.absolute(), plain=plain)
    if as_json:
        print(report.to_json())
    else:
        measuring.print_report(out, report)
    if report.error:
        raise report.error
    if not report.ok:
        raise CheckFailed(
            "the hardware differs from the inventory or from earlier measurements",
            "Check the lines marked `look` above.",
        )


@app.command()
def backup(
    inventory: Inventory,
    output: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Write the archive to this file.",
            metavar="FILE",
            show_default="CLUSTER-TIME.tar.gz in your state directory",
        ),
    ] = None,
    plain: Plain = False,
) -> None:
    """Back up the queue, the MUNGE key and the configuration of a cluster into one archive. Jobs are not affected."""
    from slurmstead.cluster import backup as archives

    archives.print_report(out, archives.run(messages, inventory.absolute(), output, plain=plain))


@app.command()
def restore(
    archive: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="An archive written by `stead backup`.")],
    inventory: Inventory,
    force: Annotated[bool, typer.Option("--force", help="Discard the jobs that the control node has now.")] = False,
    plain: Plain = False,
) -> None:
    """Restore a cluster from an archive, also onto a new control node: `up`, with the archived queue and MUNGE key."""
    if not archive.is_file():
        raise UsageError(f"there is no archive {archive}", "Give the path of an archive written by `stead backup`.")
    from slurmstead.cluster import backup as archives

    def print_notes(result: "Result") -> None:
        archives.print_notes(out, result)

    extra_vars = {"restore_archive": str(archive.absolute()), "restore_force": str(force)}
    _carry_out(PLAYBOOKS / "restore-cluster.yml", inventory, print_notes, extra_vars=extra_vars, plain=plain)


@app.command()
def rotate_key(inventory: Inventory, wake: Wake = False, plain: Plain = False) -> None:
    """Give all nodes a new MUNGE key. Running jobs continue; no job starts during the change."""
    _carry_out(PLAYBOOKS / "rotate-key.yml", inventory, extra_vars=woken(wake), plain=plain)


@app.command("move-share")
def move_share(
    inventory: Inventory,
    when_idle: WhenIdle = False,
    cancel_jobs: CancelJobs = False,
    leave_data: Annotated[
        bool, typer.Option("--leave-data", help="Copy no files: the earlier share is lost, or stays as it is.")
    ] = False,
    deadline: Deadline = 60,
    check: Check = False,
    plain: Plain = False,
) -> None:
    """Move the share to the server, disks and paths of the inventory. The original stays, read-only."""
    from slurmstead.cluster import operations

    jobs = {"move_jobs": fate(when_idle, cancel_jobs), "move_deadline": str(deadline), "move_leave": str(leave_data)}
    operations.run(*(out, messages, "move-share.yml", inventory), extra_vars=jobs, check=check, plain=plain)


@app.command()
def upgrade(
    inventory: Inventory,
    limit: Limit = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            help="Number of workers to upgrade at the same time, after the first.", min=1, show_default="a quarter"
        ),
    ] = None,
    check: Check = False,
    wake: Wake = False,
    plain: Plain = False,
) -> None:
    """Upgrade the packages of all machines, the control node first, then the workers. Running jobs continue."""
    from slurmstead.cluster import operations
    from slurmstead.cluster import upgrade as upgrading

    variables = {"upgrade_at_once": str(at_once) if at_once else None, **woken(wake)}
    operations.run(
        *(out, messages, "upgrade-cluster.yml", inventory),
        limit=limit,
        extra_vars=variables,
        check=check,
        plain=plain,
        report=lambda result: upgrading.print_report(out, messages, result, check=check),
    )


def _carry_out(
    path: pathlib.Path,
    inventory: pathlib.Path,
    report: "Callable[[Result], None] | None" = None,
    **options: Any,
) -> "Result":
    """Run a playbook on a cluster and print its changes on each host; options as for `playbook.run`.

    :param report: prints more about the run, even if the run failed
    :raises SteadError: the run failed, or no host matched
    """
    from slurmstead.runner import playbook
    from slurmstead.runner.progress import Progress, print_summary

    with Progress(messages, path.name) as progress:
        result = playbook.run(path, inventory.absolute(), observer=progress, **options)
    error = result.error
    if error is None and not result.hosts:
        error = InventoryError(
            f"{path.name} matched no host in {inventory}", "Add hosts to the inventory, or correct --limit."
        )
    if not isinstance(error, UsageError):
        print_summary(out, result)
    if report:
        report(result)
    if error:
        raise error
    return result
