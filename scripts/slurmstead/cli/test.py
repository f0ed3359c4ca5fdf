"""The verb that runs the tests of this repository."""

from typing import Annotated

import typer

from slurmstead.cli.consoles import out

app = typer.Typer()


@app.command()
def test(
    fast: Annotated[bool, typer.Option("--fast", help="Only what needs no virtual machine; under a minute.")] = False,
) -> None:
    """Run all tests of this repository."""
    from slurmstead import testing

    testing.run(out, fast=fast)
