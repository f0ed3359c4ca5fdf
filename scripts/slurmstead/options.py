"""Options that several verbs of scripts/stead share."""

import pathlib
from typing import Annotated

import typer

Inventory = Annotated[pathlib.Path, typer.Option("--inventory", "-i", help="The inventory of the cluster.")]
Check = Annotated[bool, typer.Option("--check", help="Change nothing; say what would be changed.")]
Plain = Annotated[bool, typer.Option("--plain", help="Leave the accelerator (mitogen) out.")]
