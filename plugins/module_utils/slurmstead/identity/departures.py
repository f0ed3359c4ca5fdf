# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The record of the accounts that we created on a node, and which of their users left the inventory or came back.

An account that is not in the record is never locked: an administrator created it.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ansible.module_utils.slurmstead.identity.accounts import FIRST_PERSON, Known, User
from ansible.module_utils.slurmstead.reach import durable

RECORD = Path("/var/lib/slurmstead/accounts.json")
SHADOW = Path("/etc/shadow")

EXPIRED = "1"
"""Day 1 for usermod(8). sshd, cron and su ask pam_unix(8), which refuses an expired account even to root's su."""


EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class Made:
    """An account that we created."""

    uid: int
    left: bool = False
    """Its user left the inventory, and has not been let in again."""
    jobs: bool = False
    """Slurm jobs of its user are cancelled; only on the node of slurmctld."""
    expires: str = ""
    """The day of expiry that we set; empty if we set none."""
    over: bool = False
    """Its user left because the time was over, so the jobs went on."""
    in_people: bool | None = None
    """It was declared in people.yml, not in accounts_users; None in a record of an earlier version."""


Record = Mapping[str, Made]
"""The accounts that we created, by name."""


@dataclass(frozen=True)
class Lock:
    """How an account is locked (shadow(5))."""

    password: bool = False
    """It has no password that lets its user in."""
    stored: bool = False
    """A password is stored, and would be valid again after an unlock."""
    expired: bool = False
    """Its day of expiry has come."""
    day: int | None = None
    """Its day of expiry, counted from 1970; None if it has none."""


def read(path: Path = RECORD) -> Record | None:
    """Return the record of this node; None before the first run.

    :raises ValueError: the file is not a record
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    try:
        return {name: Made(**fields) for name, fields in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a record of accounts ({error}); restore it, or move it away") from None


def write(record: Record, path: Path = RECORD) -> None:
    """Replace the record; only root can read it.

    :raises OSError: it could not be written
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    content = {name: asdict(made) for name, made in sorted(record.items())}
    durable.write(path, json.dumps(content, indent=1).encode() + b"\n", mode=0o600)


def locks(path: Path = SHADOW) -> dict[str, Lock]:
    """Return how the accounts of this node are locked, by name. Python 3.13 has no module for shadow(5)."""
    today = time.time() // 86400
    found = {}
    for line in path.read_text().splitlines():
        name, password, *_, expiry, _ = line.split(":")
        locked = password.startswith(("!", "*"))
        day = int(expiry) if expiry else None
        found[name] = Lock(locked, locked and len(password.strip("!*")) > 0, day is not None and day <= today, day)
    return found


def last_day(user: User) -> int | None:
    """Return the declared day of expiry as shadow(5) has it: useradd and usermod mistake a date in some time zones."""
    return (datetime.date.fromisoformat(user.expires) - EPOCH).days if user.expires else None


def expiry_option(user: User, made: Made | None, lock: Lock) -> list[str]:
    """Return the options of usermod(8) that set the declared day of expiry. What an administrator set stays.

    :param made: our record of the account; None for an account that we did not create
    """
    day = last_day(user)
    ours = user.expires or (made is not None and (made.expires or (made.left and lock.expired)))
    return ["--expiredate", "" if day is None else str(day)] if ours and day != lock.day else []


def renewed(
    record: Record | None, users: Iterable[User], node: Known, locks: Mapping[str, Lock], home_root: str
) -> dict[str, Made]:
    """Return the record with the declared users' accounts, and without those that an administrator removed.

    Earlier versions kept no record: the first record of a node adopts the accounts that look as if we created them.
    """
    declared = {user.name: user for user in users}
    known = record or {}

    def adopted(name: str) -> bool:
        lock = locks.get(name, Lock())
        return record is None and node.homes.get(name) == f"{home_root}/{name}" and lock.password and not lock.stored

    kept = {name: made for name, made in known.items() if name not in declared and node.users.get(name) == made.uid}
    for name, user in declared.items():
        if name in known or name not in node.users or adopted(name):
            # An administrator may have changed the number, as accounts.conflicts() advises.
            kept[name] = replace(known.get(name, Made(user.uid)), uid=user.uid, in_people=user.in_people)
    return kept


def departed(record: Record, users: Iterable[User], by_hand: Collection[str]) -> dict[str, int]:
    """Return the numeric IDs of the users who left the inventory, by name; no account that is managed by hand."""
    present = {user.name for user in users} | {*by_hand}
    return {name: made.uid for name, made in record.items() if name not in present and made.uid >= FIRST_PERSON}


def marked(record: Record, gone: Collection[str], jobs: bool, expired: Collection[str] = ()) -> dict[str, Made]:
    """Return the record in which users who are newly gone have left; the jobs of those who came back go on.

    :param jobs: their jobs are cancelled, except those of users whose time is over (`expired`)
    """
    found = {}
    for name, made in record.items():
        over, is_new = name in expired, not made.left or (made.over and name not in expired)
        if name in gone:
            found[name] = replace(made, left=True, jobs=jobs and not over if is_new else made.jobs, over=over)
        else:
            found[name] = replace(made, jobs=False)
    return found


def settled(record: Record, gone: Collection[str], users: Iterable[User] = ()) -> dict[str, Made]:
    """Return the record after everything was done: who is not gone is let in again.

    :param users: the declared ones
    """
    expiry = {user.name: user.expires for user in users}
    return {
        name: replace(
            made,
            left=name in gone,
            over=made.over and name in gone,
            expires=expiry.get(name, ""),
        )
        for name, made in record.items()
    }
