"""Names: of runs, of folders, and those that somebody mistyped."""

import datetime
import difflib
import hashlib
import pathlib
import re
import secrets
import socket
from collections.abc import Iterable, Mapping
from typing import Any

from slurmstead.errors import UsageError


def refuse_unknown(found: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse a file that says what nobody reads.

    :raises UsageError: there is such a key; the nearest that is known is named
    """
    names = sorted(known)
    for key in found:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"It may say {', '.join(names)}."
            raise UsageError(f"{where} says {key!r}, which is not known", hint)


def slug(text: str) -> str:
    """Return a text as a part of a name.

    >>> slug("Monte Carlo π")
    'monte-carlo'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:24].strip("-") or "run"


def new_run(name: str) -> str:
    """Return the id of a new run: when it was submitted (UTC), what it is called, and what makes it unique."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%d-%H%M%S}-{slug(name)}-{secrets.token_hex(3)}"


def folder_key(folder: pathlib.Path) -> str:
    """Return how a folder of this computer is told from all others."""
    return hashlib.sha256(f"{socket.gethostname()}:{folder}".encode(errors="surrogateescape")).hexdigest()[:16]
