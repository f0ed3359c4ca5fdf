# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A person, what each field of a person may be, and what no two people may share."""

from __future__ import annotations

import base64
import binascii
import datetime
import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.identity.names import SYSTEM_GROUPS, SYSTEM_NAMES, USER_NAME

FIRST = 10001
"""The first number that an import gives: the users of the inventory begin at 2001."""
LAST = 59999
"""Debian reserves the numbers from 60000 (Policy 9.2.2)."""

FIELDS = ("name", "uid", "full_name", "email", "group", "keys", "expires", "state")
STATES = ("active", "removed")

OPTION = (
    r"(?:(?:(?:no-)?(?:agent-forwarding|port-forwarding|pty|user-rc|x11-forwarding)"
    r"|cert-authority|no-touch-required|restrict|verify-required)"
    r"|(?:command|environment|expiry-time|from|permitlisten|permitopen|principals|tunnel)"
    r'="(?:[^"\\]|\\"|\\(?!"))*")'
)
"""An option before a key (sshd(8), AUTHORIZED_KEYS FILE FORMAT). sshd ignores a line with anything else there."""
KEY = re.compile(rf"\s*(?:(?i:{OPTION}(?:,{OPTION})*) +)?((?:ssh|ecdsa|sk)-\S+) +(AAAA[0-9A-Za-z+/]+=*)(?:\s|$)")


@dataclass(frozen=True)
class Person:
    """A person with an account; the number is given once, and never changed or given to another."""

    name: str
    uid: int = 0
    """0 if none was given yet"""
    full_name: str = ""
    email: str = ""
    group: str = ""
    keys: tuple[str, ...] = ()
    expires: str = ""
    """first day, in UTC, on which the account is locked; empty for never"""
    state: str = "active"
    """empty in a list that does not say"""

    def is_active(self, today: str) -> bool:
        """Return whether the person may use the cluster on a day, which is written as in `expires`."""
        return self.state == "active" and not (self.expires and self.expires <= today)


@dataclass(frozen=True)
class People:
    """The content of people.yml: people, the numbers of their groups, and the lines of both in the file."""

    people: tuple[Person, ...] = ()
    groups: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """line by name of the person"""

    def place(self, file: str, name: str) -> str:
        """Return where a person is in a file, for a message.

        >>> People(lines={"ann": 3}).place("people.yml", "ann"), People().place("people.yml", "ann")
        ('people.yml:3', 'people.yml')
        """
        return f"{file}:{self.lines[name]}" if name in self.lines else file


@dataclass(frozen=True)
class Mistake:
    """A mistake in a file; `wrong` is a clause, `advice` an imperative or a question."""

    place: str
    wrong: str
    advice: str

    @property
    def line(self) -> int:
        """The line in the file; 0 for the file as a whole."""
        number = self.place.rpartition(":")[2]
        return int(number) if number.isdigit() else 0

    def __str__(self) -> str:
        return f"{self.place}: {self.wrong}. {self.advice}{'' if self.advice.endswith('?') else '.'}"


class PeopleError(ValueError):
    """A file has mistakes; the message lists all of them."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(f"- {mistake}" for mistake in self.mistakes))


Fault = tuple[str, str]
"""What is wrong, and what to do."""


def today() -> str:
    """Return the day, in UTC, as `expires` is written."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()


def shown(value: str) -> str:
    """Return a value as one short line."""
    return json.dumps(value if len(value) <= 60 else f"{value[:60]}…", ensure_ascii=False)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return advice that names the nearest known name, or else `otherwise`."""
    match = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.7)
    return f"Did you mean {match[0]}?" if match else otherwise


def check_name(value: str) -> Iterator[Fault]:
    """Yield what is wrong with a login name."""
    if value in SYSTEM_NAMES:
        yield f"name: {value} belongs to the system", "Choose another name"
    elif not USER_NAME.fullmatch(value):
        yield (
            f"name: {shown(value)} is not a valid name",
            "Use at most 32 lower-case letters, digits, - and _, and begin with a letter",
        )


def _login_name(value: str) -> Iterator[Fault]:
    yield from check_name(value)
    if value in SYSTEM_GROUPS - SYSTEM_NAMES:
        wrong = f"name: {value} is a group of the system, and each person gets a group of that name"
        yield wrong, "Choose another name"


def check_uid(value: str) -> Iterator[Fault]:
    """Yield what is wrong with a number."""
    if not re.fullmatch(r"[0-9]{1,10}", value) or not 1000 <= int(value) <= LAST:
        yield f"uid: {shown(value)} is not a number of a user", f"Choose one from 1000 to {LAST}"


def _full_name(value: str) -> Iterator[Fault]:
    if not value.isprintable() or ":" in value:
        yield f"full_name: {shown(value)} contains a colon or a control character", "Remove it (passwd(5))"
    elif len(value) > 100:
        yield f"full_name: has {len(value)} characters, but can have only 100", "Shorten it"


def _email(value: str) -> Iterator[Fault]:
    if value and not re.fullmatch(r"[^\s@]+@[^\s@]+", value):
        yield f"email: {shown(value)} is not an address", "Write an address such as alice@example.org"


def check_group(value: str) -> Iterator[Fault]:
    """Yield what is wrong with the name of a group."""
    if value in SYSTEM_GROUPS:
        yield f"group: {value} belongs to the system", "Choose another name"
    elif value and not USER_NAME.fullmatch(value):
        yield (
            f"group: {shown(value)} is not a valid name",
            "Use at most 32 lower-case letters, digits, - and _, and begin with a letter",
        )


def is_date(value: str) -> bool:
    """Return whether a text is a day, such as 2027-02-28."""
    try:
        return datetime.date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _expires(value: str) -> Iterator[Fault]:
    if value and not is_date(value):
        yield f"expires: {shown(value)} is not a date", "Write year, month and day, such as 2027-02-28"


def _state(value: str) -> Iterator[Fault]:
    if value not in STATES:
        yield f"state: is {shown(value)}", did_you_mean(value, STATES, f"Write {' or '.join(STATES)}")


def _keys(value: tuple[str, ...]) -> Iterator[Fault]:
    for number, key in enumerate(value, start=1):
        # A private key is never shown.
        if "PRIVATE KEY" in key:
            yield (
                f"keys: key {number} is a private key",
                "Write the public key, which is in the file that ends in .pub, and replace the private key",
            )
        elif not is_public_key(key):
            yield (
                f"keys: key {number} is not a complete public key",
                "Write one line such as: ssh-ed25519 AAAA… comment",
            )


CHECKS: Mapping[str, Callable[[str], Iterator[Fault]]] = {
    "name": _login_name,
    "uid": check_uid,
    "full_name": _full_name,
    "email": _email,
    "group": check_group,
    "expires": _expires,
    "state": _state,
}


def key_itself(key: str) -> str:
    """Return the part of a line of authorized_keys(5) that is the key, without options and comment."""
    found = KEY.match(key)
    return found.group(2) if found else ""


def is_public_key(key: str) -> bool:
    """Return whether sshd accepts a line: it has only options before a complete public key (RFC 4253, 6.6)."""
    found = KEY.match(key)
    if not found or "\n" in key.strip() or not key.isprintable():
        return False
    try:
        blob = base64.b64decode(found.group(2), validate=True)
    except binascii.Error:
        return False
    parts = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length:
            return False
        parts.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return len(parts) > 1 and parts[0] == found.group(1).encode()


def person(fields: Mapping[str, str | tuple[str, ...]], state: str = "active") -> tuple[Person | None, list[Fault]]:
    """Return the person whom fields describe, or the faults of the fields; blank fields count as absent.

    :param state: if the fields have none
    """
    texts = {name: value for name, value in fields.items() if isinstance(value, str) and value}
    keys = fields.get("keys", ())
    keys = tuple(key for key in keys if key) if isinstance(keys, tuple) else (keys,)
    faults = [fault for name, value in texts.items() for fault in CHECKS[name](value)] + list(_keys(keys))
    if not texts.get("name"):
        faults.insert(0, ("has no name", "Give each person a name"))
    if faults:
        return None, faults
    return Person(
        name=texts["name"],
        uid=int(texts.get("uid", "0")),
        full_name=texts.get("full_name", ""),
        email=texts.get("email", ""),
        group=texts.get("group", ""),
        keys=keys,
        expires=texts.get("expires", ""),
        state=texts.get("state", state),
    ), []


def shared(placed: Iterable[tuple[str, Person]]) -> Iterator[Mistake]:
    """Yield what people share who must not: a name, a number or a key. Each person comes with its place."""
    names: dict[str, str] = {}
    numbers: dict[int, tuple[str, str]] = {}
    keys: dict[str, tuple[str, str]] = {}
    for place, one in placed:
        if one.name in names:
            yield Mistake(place, f"{one.name} is already in {names[one.name]}", "Keep one of the two")
            continue
        names[one.name] = place
        if one.uid:
            other, where = numbers.setdefault(one.uid, (one.name, place))
            if other != one.name:
                yield Mistake(
                    place, f"uid: {one.uid} is the number of {other} ({where})", "Give each person one number"
                )
        for key in map(key_itself, one.keys):
            other, where = keys.setdefault(key, (one.name, place))
            if other != one.name:
                yield Mistake(
                    place, f"keys: {one.name} has the key of {other} ({where})", "Ask both for their own public keys"
                )
