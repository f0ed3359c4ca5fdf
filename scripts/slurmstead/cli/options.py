"""Options that several verbs of scripts/stead share."""

import pathlib
from typing import Annotated

import typer

from slurmstead.errors import UsageError

Inventory = Annotated[pathlib.Path, typer.Option("--inventory", "-i", help="The inventory of the cluster.")]
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
