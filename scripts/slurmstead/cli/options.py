"""Options that several verbs of scripts/stead share."""

import difflib
import pathlib
import re
from typing import Annotated

import typer
from rich.text import Text

from slurmstead.cli.consoles import messages
from slurmstead.errors import UsageError
from slurmstead.paths import PLAYBOOKS
from slurmstead.site import find

TAGS = re.compile(r"^ *tags: \[(.+)\]$", re.MULTILINE)
"""The tags of a play or task."""

SPECIAL_TAGS = {"all", "always", "never", "tagged", "untagged"}
"""Tags that Ansible knows without a task that has them."""


def _found() -> pathlib.Path:
    """Return the site of a command without -i, and print it."""
    site = find.find()
    messages.print(Text(f"Site: {site}"), soft_wrap=True)
    return site


def _given(parameter: typer.CallbackParam, text: str | None) -> str | None:
    """Refuse a text without a name, such as an unset variable of a shell: Ansible would take it for everything.

    :raises UsageError: it has no name
    """
    if text is not None and not re.search(r"[\w*]", text):
        option = f"--{parameter.name}"
        raise UsageError(f"{option} is {text!r}, which has no name", f"To work on everything, leave {option} out.")
    return text


def named(text: str | pathlib.Path) -> pathlib.Path:
    """Refuse an empty path, such as an unset variable of a shell: it would be the current directory.

    :raises UsageError: it is empty
    """
    if not str(text):
        raise UsageError("-i is empty", "Write a path after -i, or leave -i out.")
    return pathlib.Path(text)


def _tags(parameter: typer.CallbackParam, text: str | None) -> str | None:
    """Refuse a tag that no playbook has: Ansible would run nothing and report success.

    :raises UsageError: it is mistyped, or the text has none
    """
    playbooks = "".join(path.read_text() for path in PLAYBOOKS.glob("*.yml")) if text else ""
    known = SPECIAL_TAGS.union(*(tags.split(", ") for tags in TAGS.findall(playbooks)))
    for tag in (_given(parameter, text) or "").split(","):
        if tag and tag.strip() not in known:
            near = difflib.get_close_matches(tag, known, n=1)
            advice = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(sorted(known - SPECIAL_TAGS))}."
            raise UsageError(f"--tags: no task has the tag {tag!r}", advice)
    return text


Inventory = Annotated[
    pathlib.Path,
    typer.Option(
        *("--inventory", "-i"),
        help="The site, a directory, or its hosts.yml.",
        default_factory=_found,
        show_default="STEAD_SITE, or the current directory or one above it",
        metavar="PATH",
        parser=named,
        callback=find.inventory,
    ),
]
Check = Annotated[bool, typer.Option("--check", help="Change nothing; show what would change.")]
Plain = Annotated[bool, typer.Option("--plain", help="Run Ansible without the accelerator (mitogen).")]
Wake = Annotated[
    bool,
    typer.Option("--wake", help="Wake machines that sleep; otherwise they get no jobs until this is done there."),
]
Limit = Annotated[str | None, typer.Option(help="Work on these hosts only.", metavar="HOSTS", callback=_given)]
Tags = Annotated[str | None, typer.Option(help="Run only the tasks with these tags.", metavar="TAGS", callback=_tags)]

WhenIdle = Annotated[bool, typer.Option("--when-idle", help="Wait for running jobs; start no new ones meanwhile.")]
CancelJobs = Annotated[bool, typer.Option("--cancel-jobs", help="Cancel running jobs; pending jobs stay in the queue.")]
Deadline = Annotated[
    int,
    typer.Option(help="Minutes to wait for running jobs; after that, give up and restore the previous state.", min=0),
]


def woken(wake: bool) -> dict[str, str]:
    """Return the variables of a run that wakes the machines that sleep, or does not."""
    return {"wake_sleepers": "true"} if wake else {}


def fate(when_idle: bool, cancel: bool) -> str:
    """Return worker_service's word for the handling of running jobs.

    :raises UsageError: both options were given
    """
    if when_idle and cancel:
        raise UsageError("--when-idle and --cancel-jobs cannot be used together", "Use one of them.")
    return "wait" if when_idle else "cancel" if cancel else "refuse"
