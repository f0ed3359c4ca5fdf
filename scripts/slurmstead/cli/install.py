"""The verb that installs blank machines: stead install."""

from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages, out
from slurmstead.cli.options import Inventory, Plain
from slurmstead.errors import SteadError

app = typer.Typer()


@app.command()
def install(
    name: Annotated[str, typer.Argument(help="A blank worker of the inventory.", metavar="NODE", show_default=False)],
    inventory: Inventory,
    deadline: Annotated[
        int, typer.Option(help="Minutes to wait until it has booted over the network.", min=1, max=170)
    ] = 60,
    restart: Annotated[
        bool, typer.Option("--restart", help="Cut its power first if it is on, for example at a boot menu.")
    ] = False,
    plain: Plain = False,
) -> None:
    """Install Debian on a blank machine that boots over the network, and make it a worker."""
    from slurmstead.cluster import install as work
    from slurmstead.cluster import operations
    from slurmstead.runner import playbook

    listed = playbook.listed(inventory)
    found = operations.grouped(listed)
    operations.check_names([name], found, inventory)
    work.check(name, found, listed, restart=restart)
    operations.reload_firewalls(out, messages, inventory, name, plain=plain)
    out.print(Text(f"Switch {name} on when this waits for it. Its firmware must boot over the network first."))
    installed = work.run(out, messages, inventory, name, found, deadline=deadline, restart=restart, plain=plain)
    for line in work.lines(name, installed):
        out.print(Text(line), soft_wrap=True)
    try:
        operations.run(
            *(out, messages, "add-node.yml", inventory),
            limit=operations.around(name, found),
            extra_vars={"added_host_key": installed.host_key},
            plain=plain,
        )
    except SteadError as error:
        error.hint = f"The system is installed. Then run: scripts/stead add-node {name} --host-key {installed.host_key}"
        raise
