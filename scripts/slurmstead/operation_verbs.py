"""The verbs of scripts/stead that work on machines: reboot, upgrade."""

from typing import Annotated

import typer
from rich.console import Console

from slurmstead.errors import UsageError
from slurmstead.options import Check, Inventory, Plain
from slurmstead.paths import CLUSTER_INVENTORY


def register(app: typer.Typer, out: Console, messages: Console) -> None:
    """Add the verbs to the command line.

    :param out: where what was done is printed
    :param messages: where progress and notes are
    """

    @app.command()
    def reboot(
        nodes: Annotated[list[str] | None, typer.Argument(help="Workers of the inventory.", metavar="NODE...")] = None,
        everything: Annotated[bool, typer.Option("--all", help="All workers, one after the other.")] = False,
        at_once: Annotated[int, typer.Option(help="How many at the same time.", min=1)] = 1,
        deadline: Annotated[int, typer.Option(help="Minutes that the jobs of a node may take to end.", min=0)] = 60,
        inventory: Inventory = CLUSTER_INVENTORY,
        check: Check = False,
        plain: Plain = False,
    ) -> None:
        """Reboot workers through Slurm: each when its jobs have ended, and the next when it is back."""
        from slurmstead import operations

        if bool(nodes) == everything:
            raise UsageError("reboot needs names of workers, or --all", "See: scripts/stead reboot --help")
        found = operations.groups(inventory)
        chosen = nodes or operations.workers_alone(found)
        operations.check_names(chosen, found, inventory)
        variables = {"reboot_at_once": str(at_once), "reboot_deadline": str(deadline)}
        operations.run(
            *(out, messages, "reboot-workers.yml", inventory),
            limit=",".join(chosen),
            extra_vars=variables,
            check=check,
            plain=plain,
        )

    @app.command()
    def upgrade(
        inventory: Inventory = CLUSTER_INVENTORY,
        limit: Annotated[str | None, typer.Option(help="Work on these hosts only.", metavar="HOSTS")] = None,
        at_once: Annotated[
            int | None,
            typer.Option(help="How many workers at the same time, after the first.", min=1, show_default="a quarter"),
        ] = None,
        check: Check = False,
        plain: Plain = False,
    ) -> None:
        """Upgrade the packages of all machines, control first, then the workers. Jobs go on."""
        from slurmstead import operations

        variables = {"upgrade_at_once": str(at_once) if at_once else None}
        operations.run(
            *(out, messages, "upgrade-cluster.yml", inventory),
            limit=limit,
            extra_vars=variables,
            check=check,
            plain=plain,
        )
