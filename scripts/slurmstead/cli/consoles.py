"""The consoles of scripts/stead: results go to standard output, progress and errors to standard error."""

import os
import stat
import sys

from rich.console import Console

from slurmstead.errors import UsageError

out = Console(highlight=False)
messages = Console(stderr=True, highlight=False)


def check_privacy(secret: str) -> None:
    """Refuse to write a secret into a file that other users can read.

    :param secret: what it is, as a sentence
    :raises UsageError: standard output is such a file
    """
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISREG(mode) and mode & 0o077:
        raise UsageError(
            f"{secret}, and standard output is a file that other users can read",
            "Run `umask 077` before, and write to a new file.",
        )
