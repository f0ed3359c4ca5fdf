"""Names of runs and folders, and mistyped keys."""

import datetime
import difflib
import hashlib
import pathlib
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from slurmstead.client.remote import store
from slurmstead.errors import UsageError


def refuse_unknown(found: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse unknown keys.

    :raises UsageError: a key is unknown; the hint names the nearest known one
    """
    names = sorted(known)
    for key in found:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known keys are {', '.join(names)}."
            raise UsageError(f"{where}: unknown key {key!r}", hint)


def slug(text: str) -> str:
    """Return a text as a part of a name.

    >>> slug("Monte Carlo π")
    'monte-carlo'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:24].strip("-") or "run"


def check_run(identifier: str | None) -> None:
    """Refuse a text that cannot be the ID of a run, such as an unset variable of a shell.

    :raises UsageError: it cannot be one
    """
    if identifier is not None and not store.ID.fullmatch(identifier):
        raise UsageError(f"{identifier!r} is not a valid run ID", store.ID_RULE)


def new_run(name: str) -> str:
    """Return the ID of a new run: the time (UTC), its name, and a random part."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%d-%H%M%S}-{slug(name)}-{secrets.token_hex(3)}"


def folder_key(computer: str, folder: pathlib.Path) -> str:
    """Return a key that identifies a folder of a computer."""
    return hashlib.sha256(f"{computer}:{folder}".encode(errors="surrogateescape")).hexdigest()[:16]
