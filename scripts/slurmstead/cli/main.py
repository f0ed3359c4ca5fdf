"""The command line of scripts/stead: its verbs, and the exit code of each error."""

import errno
import io
import os
import signal
import sys
from types import FrameType

import typer
from rich.text import Text

from slurmstead.cli import (
    board,
    cluster,
    discover,
    images,
    install,
    lab,
    machines,
    people,
    power,
    quiet,
    site,
    test,
    vpn,
)
from slurmstead.cli.consoles import messages, out
from slurmstead.client import verbs as jobs
from slurmstead.errors import ExitCode, Interrupted, MachineError, SteadError, UsageError
from slurmstead.runner.interruption import ending_signals

EPILOG = (
    "Exit codes: 0 success, 1 a check failed, 2 wrong usage or inventory, 3 a host could not be reached, "
    "4 a task failed, 130 interrupted."
)

app = typer.Typer(
    help="Turns machines into a Slurm cluster, rehearses changes on virtual machines, and submits jobs.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for theme in (lab, site, people, cluster, machines, discover, install, board, power, quiet, images, vpn, test):
    app.add_typer(theme.app)
jobs.register(app, out, messages)

UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG)
"""Errors of paths that the user gave, or of the user's own directories."""

NO_TEMPORARY = "No usable temporary directory"
"""The message of Python's tempfile if no temporary directory is writable."""


def _interrupted(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


def _say(error: SteadError) -> int:
    messages.print(Text(f"stead: {error}", style="bold red"), soft_wrap=True)
    if error.hint:
        messages.print(Text(f"       {error.hint}"), soft_wrap=True)
    return error.code


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for number in ending_signals():
        signal.signal(number, _interrupted)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Other locales than UTF-8 lack characters of ours, such as those of the progress.
        sys.stdout.reconfigure(errors="replace")
    # The launcher sets it to find this package; child processes must not inherit it.
    os.environ.pop("PYTHONPATH", None)
    arguments = sys.argv[1:] if arguments is None else arguments
    # What another user is told while this command has the cluster lock; options can contain what others must not see.
    os.environ["STEAD_COMMAND"] = " ".join(["stead", *arguments[:1]])
    try:
        app(arguments, prog_name="stead")
    except SteadError as error:
        return _say(error)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or NO_TEMPORARY in str(error):
            return _say(
                MachineError(
                    f"the disk of this computer is full: {error}", "Free some space, then run the command again."
                )
            )
        if error.errno in UNUSABLE and error.filename:
            return _say(
                UsageError(f"{error.filename} cannot be used: {error.strerror}", "Check the path and its mode.")
            )
        if isinstance(error, FileNotFoundError) and error.filename is None:
            # Only getcwd(3) names no file.
            return _say(UsageError("the current directory was removed", "Change to another directory, then try again."))
        raise
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.USAGE
    return ExitCode.OK
