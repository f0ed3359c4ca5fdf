"""The verbs of scripts/stead that switch a whole cluster off, and bring it back: shutdown, start."""

from typing import Annotated

import typer
from rich.console import Console

from slurmstead.job_options import CancelJobs, Deadline, WhenIdle, fate
from slurmstead.options import Check, Inventory, Plain
from slurmstead.paths import CLUSTER_INVENTORY


def register(app: typer.Typer, out: Console, messages: Console) -> None:
    """Add the verbs to the command line.

    :param out: where what was done is printed
    :param messages: where progress and notes are
    """

    @app.command()
    def shutdown(
        when_idle: WhenIdle = False,
        cancel_jobs: CancelJobs = False,
        deadline: Deadline = 60,
        inventory: Inventory = CLUSTER_INVENTORY,
        check: Check = False,
        plain: Plain = False,
    ) -> None:
        """Switch all machines off, workers first, control last. What waits in the queue stays there."""
        from slurmstead import operations

        jobs = {"shutdown_jobs": fate(when_idle, cancel_jobs), "shutdown_deadline": str(deadline)}
        operations.run(*(out, messages, "shut-down-cluster.yml", inventory), extra_vars=jobs, check=check, plain=plain)
        if not check:
            out.print("When the machines are switched on again: scripts/stead start")

    @app.command()
    def start(
        deadline: Annotated[int, typer.Option(help="Minutes to wait for each of the machines.", min=0)] = 10,
        inventory: Inventory = CLUSTER_INVENTORY,
        plain: Plain = False,
    ) -> None:
        """Wait for machines that were switched on, and let jobs start again after a shutdown."""
        from slurmstead import operations

        variables = {"start_deadline": str(deadline)}
        operations.run(*(out, messages, "start-cluster.yml", inventory), extra_vars=variables, plain=plain)
