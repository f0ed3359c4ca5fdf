"""The verb that creates a site: init."""

import getpass
import pathlib
import shlex
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from slurmstead.cli.consoles import out
from slurmstead.paths import ROOT

if TYPE_CHECKING:
    from slurmstead.site.create import Made

app = typer.Typer()


@app.command()
def init(
    directory: Annotated[
        pathlib.Path, typer.Argument(help="A new directory, not in the clone of Slurmstead.", metavar="DIR")
    ],
    control: Annotated[
        list[str] | None, typer.Option(help="The control node; it also has the share.", metavar="NAME=ADDRESS")
    ] = None,
    worker: Annotated[
        list[str] | None, typer.Option(help="A worker; repeat it for each.", metavar="NAME=ADDRESS")
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(help="A user of the cluster; repeat it for each.", metavar="NAME", show_default="you"),
    ] = None,
    key: Annotated[
        list[pathlib.Path] | None,
        typer.Option(help="One of your public ssh keys.", metavar="FILE", show_default="~/.ssh/*.pub"),
    ] = None,
    template: Annotated[
        Literal["home", "lab", "course"] | None,
        typer.Option(help="Limits and shares of the users: see docs/shares.md.", show_default="home"),
    ] = None,
) -> None:
    """Create a site: the directory that describes your cluster. Without machines, an example to fill in."""
    from slurmstead.site.create import create

    made = create(
        directory,
        control=control or [],
        workers=worker or [],
        users=user or [getpass.getuser()],
        key_files=key or [],
        template=template,
    )
    out.print(Text(f"{made.path}: {_summary(made)}; {made.git}"), soft_wrap=True)
    out.print(Text(_next(made)), soft_wrap=True)


def _summary(made: "Made") -> str:
    from slurmstead.wording import count

    users = f"{count(len(made.site.users), 'user')} ({', '.join(made.site.users)})"
    if made.site.is_example:
        return f"an example, {users}"
    return f"1 control node, {count(len(made.site.workers), 'worker')}, {users}"


def _next(made: "Made") -> str:
    stead, path = shlex.quote(str(ROOT / "scripts" / "stead")), shlex.quote(str(made.path))
    fill_in = f"\n  edit {path}/hosts.yml: write the addresses, and name your machines" if made.site.is_example else ""
    return f"""Next:{fill_in}
  give the machines an account for Ansible: step 2 of "Your own machines" in README.md
  {stead} up -i {path}"""
