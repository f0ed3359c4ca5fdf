"""The consoles of scripts/stead: results go to standard output, progress and errors to standard error."""

from rich.console import Console

out = Console(highlight=False)
messages = Console(stderr=True, highlight=False)
