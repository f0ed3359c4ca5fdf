"""Links with which people choose a password for notebooks. Their secrets never leave this computer in clear."""

import hashlib
import json
import pathlib
import secrets
from collections.abc import Iterable, Mapping

from rich.console import Console

from slurmstead.cluster.ask import ask
from slurmstead.errors import CheckFailed


def invited(console: Console, inventory: pathlib.Path, names: Iterable[str], *, plain: bool = False) -> dict[str, str]:
    """Return a link for each person, with progress on `console`.

    :raises SteadError: control could not be reached, or has no hub or no account of a person
    """
    tokens = {name: secrets.token_urlsafe(24) for name in names}
    digests = {name: hashlib.sha256(token.encode()).hexdigest() for name, token in tokens.items()}
    found = ask(
        *(console, "invite-people.yml", inventory, "jupyterhub_invitation", "url"),
        unasked=CheckFailed(f"{inventory} has no control node", "Add it to the group control."),
        extra_vars={"invited_people": json.dumps(digests)},
        plain=plain,
    )
    return links(found["url"], tokens)


def links(url: str, tokens: Mapping[str, str]) -> dict[str, str]:
    """Return the links of people.

    >>> links("https://control", {"alice": "s3cr3t"})
    {'alice': 'https://control/hub/invitation?token=s3cr3t'}
    """
    return {name: f"{url}/hub/invitation?token={token}" for name, token in tokens.items()}
