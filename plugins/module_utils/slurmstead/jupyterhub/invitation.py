# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Invitations, with which people without a password choose one; the page of the hub reads them.

An invitation is a file, named after the SHA-256 of the secret in its link. So no file, log or argument has the secret.
"""

from __future__ import annotations

import json
import pathlib
import pwd
import re
import time
from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.identity import departures
from ansible.module_utils.slurmstead.reach import durable

DIRECTORY = pathlib.Path("/var/lib/slurmstead-jupyterhub/invitations")
SECONDS = 7 * 24 * 3600
"""How long an invitation is valid; slurmstead_hub.py has the same."""

FIRST_PERSON = 1000
DIGEST = re.compile(r"[0-9a-f]{64}")


def problems(wanted: Mapping[str, str]) -> Iterator[str]:
    """Yield why people cannot be invited; `wanted` are digests by name."""
    for name, digest in wanted.items():
        try:
            number = pwd.getpwnam(name).pw_uid
        except KeyError:
            yield f"{name} has no account here; `stead up` creates those of the inventory"
            continue
        if number < FIRST_PERSON:
            yield f"{name} is an account of the system"
        elif departures.locks().get(name, departures.Lock()).expired:
            way = f"run `stead people expire {name} --on never` or `stead people add {name}`, then `stead up`"
            yield f"{name} is locked: {way}"
        elif not DIGEST.fullmatch(digest):
            yield f"the invitation of {name} is not a SHA-256"


def write(wanted: Mapping[str, str], directory: pathlib.Path = DIRECTORY) -> None:
    """Invite people; earlier invitations of theirs, and old ones of others, are void."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in list(directory.iterdir()):
        if DIGEST.fullmatch(path.name) and (_name(path) in wanted or time.time() - path.stat().st_mtime > SECONDS):
            path.unlink(missing_ok=True)
    for name, digest in wanted.items():
        durable.write(directory / digest, json.dumps({"name": name}).encode(), 0o600)


def _name(path: pathlib.Path) -> str:
    try:
        return str(json.loads(path.read_text())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
