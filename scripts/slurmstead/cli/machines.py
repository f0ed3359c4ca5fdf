"""Verbs that work on machines: reboot, add-node, remove-node, replace-node, shutdown, start."""

from typing import Annotated

import typer

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import CancelJobs, Check, Deadline, Inventory, Plain, WhenIdle, fate
from slurmstead.errors import UnreachableError, UsageError

app = typer.Typer()

Node = Annotated[str, typer.Argument(help="A worker of the inventory.", metavar="NAME", show_default=False)]
HostKey = Annotated[
    str | None, typer.Option(help="Fingerprint of the machine's ssh host key, from its console.", metavar="SHA256:...")
]


@app.command()
def reboot(
    inventory: Inventory,
    nodes: Annotated[list[str] | None, typer.Argument(help="Workers of the inventory.", metavar="NODE")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Reboot all workers.")] = False,
    at_once: Annotated[int, typer.Option(help="Number of workers to reboot at the same time.", min=1)] = 1,
    deadline: Annotated[int, typer.Option(help="Minutes to wait for the jobs of each node.", min=0)] = 60,
    check: Check = False,
    plain: Plain = False,
) -> None:
    """Reboot workers through Slurm: each after its jobs have ended, the next when it is back."""
    from slurmstead.cluster import operations

    if bool(nodes) == everything:
        raise UsageError("reboot needs either names of workers or --all", "See: scripts/stead reboot --help")
    found = operations.groups(inventory)
    chosen = nodes or operations.workers_alone(found)
    if not chosen:
        # Without a limit a playbook works on all machines.
        raise UsageError(
            f"no worker in {inventory} can be rebooted", "Reboot the control node and the NFS server by hand."
        )
    operations.check_names(chosen, found, inventory)
    variables = {"reboot_at_once": str(at_once), "reboot_deadline": str(deadline)}
    operations.run(
        *(out, messages, "reboot-workers.yml", inventory),
        limit=",".join(chosen),
        extra_vars=variables,
        check=check,
        plain=plain,
    )


@app.command("add-node")
def add_node(
    name: Node,
    inventory: Inventory,
    host_key: HostKey = None,
    check: Check = False,
    plain: Plain = False,
) -> None:
    """Set up a machine that is new in the inventory as a worker. Of other workers, only the firewall is changed."""
    from slurmstead.cluster import operations

    found = operations.groups(inventory)
    operations.check_names([name], found, inventory)
    operations.reload_firewalls(out, messages, inventory, name, check=check, plain=plain)
    operations.run(
        *(out, messages, "add-node.yml", inventory),
        limit=operations.around(name, found),
        extra_vars={"added_host_key": host_key},
        check=check,
        plain=plain,
    )
    if not check:
        out.print("To add its name to /etc/hosts of the other workers, run: scripts/stead up")


@app.command("remove-node")
def remove_node(
    name: Node,
    inventory: Inventory,
    when_idle: WhenIdle = False,
    cancel_jobs: CancelJobs = False,
    deadline: Deadline = 60,
    check: Check = False,
    plain: Plain = False,
) -> None:
    """Remove a worker, and delete its MUNGE key and NFS mount. Of other workers, only the firewall is changed."""
    from slurmstead.cluster import operations

    found = operations.groups(inventory)
    operations.check_names([name], found, inventory)
    jobs = {"removed_jobs": fate(when_idle, cancel_jobs), "removed_deadline": str(deadline)}
    try:
        operations.run(
            *(out, messages, "remove-node.yml", inventory),
            limit=operations.around(name, found),
            extra_vars={"removed_node": name, **jobs},
            check=check,
            plain=plain,
        )
    except UnreachableError as error:
        if error.hosts != {name}:
            # Without control the node is still in service.
            raise
        hint = f"Repeat this when {name} is on. If it is lost, run `stead rotate-key` to invalidate its MUNGE key."
        operations.reload_firewalls(out, messages, inventory, name, removed=True, check=check, plain=plain)
        raise UnreachableError(str(error), hint) from error
    operations.reload_firewalls(out, messages, inventory, name, removed=True, check=check, plain=plain)
    if not check:
        out.print(f"Now delete {name} from {inventory}; otherwise the next `scripts/stead up` adds it again.")


@app.command("replace-node")
def replace_node(
    name: Node,
    inventory: Inventory,
    host_key: HostKey = None,
    when_idle: WhenIdle = False,
    cancel_jobs: CancelJobs = False,
    deadline: Deadline = 60,
    check: Check = False,
    plain: Plain = False,
) -> None:
    """Set up another machine as the worker of this name. Of other workers, only the firewall is changed."""
    from slurmstead.cluster import operations

    jobs = {"replaced_jobs": fate(when_idle, cancel_jobs), "replaced_deadline": str(deadline)}
    found = operations.groups(inventory)
    operations.check_names([name], found, inventory)
    # The address of the new machine may be another one.
    operations.reload_firewalls(out, messages, inventory, name, check=check, plain=plain)
    operations.run(
        *(out, messages, "replace-node.yml", inventory),
        limit=operations.around(name, found),
        extra_vars={"replaced_node": name, "replaced_host_key": host_key, **jobs},
        check=check,
        plain=plain,
    )


@app.command()
def shutdown(
    inventory: Inventory,
    when_idle: WhenIdle = False,
    cancel_jobs: CancelJobs = False,
    deadline: Deadline = 60,
    check: Check = False,
    plain: Plain = False,
) -> None:
    """Power off all machines, workers first, the control node last. Pending jobs stay in the queue."""
    from slurmstead.cluster import operations

    jobs = {"shutdown_jobs": fate(when_idle, cancel_jobs), "shutdown_deadline": str(deadline)}
    operations.run(*(out, messages, "shut-down-cluster.yml", inventory), extra_vars=jobs, check=check, plain=plain)
    if not check:
        out.print("When you have powered the machines on again, run: scripts/stead start")


@app.command()
def start(
    inventory: Inventory,
    deadline: Annotated[int, typer.Option(help="Minutes to wait for each machine.", min=0)] = 10,
    plain: Plain = False,
) -> None:
    """After a shutdown: wait for the machines to boot, then let jobs start again."""
    from slurmstead.cluster import operations

    variables = {"start_deadline": str(deadline)}
    operations.run(*(out, messages, "start-cluster.yml", inventory), extra_vars=variables, plain=plain)
