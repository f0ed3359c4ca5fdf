"""Options that several verbs of scripts/stead share."""

import pathlib
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages
from slurmstead.errors import UsageError
from slurmstead.site import find


def _found() -> pathlib.Path:
    """Return the site that no option names, and say which it is."""
    site = find.find()
    messages.print(Text(f"Site: {site}"), soft_wrap=True)
    return site


Inventory = Annotated[
    pathlib.Path,
    typer.Option(
        *("--inventory", "-i"),
        help="The site, a directory, or its hosts.yml.",
        default_factory=_found,
        show_default="STEAD_SITE, or the current directory or one above it",
        callback=find.inventory,
    ),
]
Check = Annotated[bool, typer.Option("--check", help="Change nothing; say what would be changed.")]
Plain = Annotated[bool, typer.Option("--plain", help="Leave the accelerator (mitogen) out.")]
Limit = Annotated[str | None, typer.Option(help="Work on these hosts only.", metavar="HOSTS")]
Tags = Annotated[str | None, typer.Option(help="Run the tasks with these tags only.", metavar="TAGS")]

WhenIdle = Annotated[bool, typer.Option("--when-idle", help="Wait for the jobs; no new ones start meanwhile.")]
CancelJobs = Annotated[bool, typer.Option("--cancel-jobs", help="Cancel the jobs that run; the queue stays.")]
Deadline = Annotated[int, typer.Option(help="Minutes to wait for jobs; then all is as it was.", min=0)]


def fate(when_idle: bool, cancel: bool) -> str:
    """Return what becomes of jobs that run, as worker_service calls it.

    :raises UsageError: both were asked for
    """
    if when_idle and cancel:
        raise UsageError("--when-idle and --cancel-jobs contradict each other", "Give one of them.")
    return "wait" if when_idle else "cancel" if cancel else "refuse"
