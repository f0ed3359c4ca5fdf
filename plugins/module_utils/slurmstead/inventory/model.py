# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Types that all checks of an inventory share: the inventory's content, problems, and their wording."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.slurmstead.slurm.hostlist import compress

SHOWN_LENGTH = 80
"""Maximum number of characters of a value in a message."""


@dataclass(frozen=True)
class Variable:
    """One variable of one host in the inventory."""

    value: Any = None
    """templated; None if `error` is set"""
    origin: str = ""
    """file and line, if known"""
    error: str = ""
    """why the value could not be computed"""


@dataclass(frozen=True)
class VariableFile:
    """A file or directory below group_vars/ or host_vars/."""

    path: str
    kind: str
    """group or host"""
    name: str
    """name of the group or host to which Ansible applies it"""


@dataclass(frozen=True)
class RepeatedKey:
    """A key that occurs twice in one mapping of a YAML file; YAML keeps only the last."""

    place: str
    """file and line of the repetition"""
    key: str
    first: int
    """line of the first one"""


@dataclass(frozen=True)
class Sexagesimal:
    """A value that YAML reads as a number to the base of 60; `place` is its file and line."""

    place: str
    text: str
    number: str


@dataclass(frozen=True)
class DropIn:
    """An entry of a directory of drop-ins, whose programs the roles install on nodes."""

    path: str
    is_file: bool = True
    """also true for a link to one"""
    is_executable: bool = True
    first_line: bytes = b"#!/bin/sh\n"
    """of the file, at most 256 bytes"""


@dataclass(frozen=True)
class Inventory:
    """The whole inventory, even with --limit."""

    groups: Mapping[str, Sequence[str]]
    """names of the hosts by group, including child groups"""
    hosts: Mapping[str, Mapping[str, Variable]]
    """variables by host and name"""
    files: Sequence[VariableFile] = ()
    repeated_keys: Sequence[RepeatedKey] = ()
    sexagesimals: Sequence[Sexagesimal] = ()
    drop_ins: Sequence[DropIn] = ()
    unread: Sequence[Violation] = ()
    """files and directories of variables that Ansible skips"""


@dataclass(frozen=True)
class Groups:
    """Names of the groups that the playbooks use."""

    control: str
    nfs_server: str
    workers: str

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (self.control, self.nfs_server, self.workers)


@dataclass(frozen=True)
class Specs:
    """The roles' variables, from meta/argument_specs.yml."""

    roles: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """options of each role's entry point `main`, by role and variable"""
    computed: frozenset[str] = frozenset()
    """variables that the playbooks set themselves, from the groups and the other variables"""
    optional: frozenset[str] = frozenset()
    """roles that apply only to hosts that set one of their variables"""
    options: Mapping[str, Mapping[str, Any]] = field(init=False)
    """options of all roles by variable"""

    def __post_init__(self) -> None:
        everywhere = {name: option for options in self.roles.values() for name, option in options.items()}
        # A role may read another role's variable; the spec of the variable's own role counts.
        own = {
            name: option
            for role, options in self.roles.items()
            for name, option in options.items()
            if self.role_of(name) == role
        }
        object.__setattr__(self, "options", {**everywhere, **own})

    def role_of(self, name: str) -> str | None:
        """The role whose prefix the name has; the longest counts (nfs_server_path is nfs_server's)."""
        matching = [role for role in self.roles if name.startswith(f"{role}_")]
        return max(matching, key=len, default=None)

    def is_secret(self, name: str) -> bool:
        """Whether the variable, or a part of it, must never be printed."""
        return has_no_log(self.options.get(name, {}))


def has_no_log(option: Mapping[str, Any]) -> bool:
    """Whether the option, or a part of it, must never be printed."""
    return bool(option.get("no_log")) or any(map(has_no_log, (option.get("options") or {}).values()))


Violation = tuple[str, str, str]
"""The first three parts of a Problem: a variable, what is wrong, what to do."""
HostViolation = tuple[tuple[str, ...], str, str, str]
"""The affected hosts, then the same."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. Without hosts it concerns the inventory as a whole."""

    subject: str
    """a variable, group, host or file"""
    wrong: str
    """a clause without a full stop: `is 300, which is not an address`"""
    advice: str
    """what to do, as an imperative without a full stop, or as a question"""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def __str__(self) -> str:
        places = [compress(self.hosts), *sorted(self.origins)[:2]]
        place = "; ".join(filter(None, places))
        end = "" if self.advice.endswith("?") else "."
        return f"{self.subject}{f' ({place})' if place else ''}: {self.wrong}. {self.advice}{end}"


def shown(value: Any) -> str:
    """The value as one short line.

    >>> shown({"a": [1, None]})
    '{"a": [1, null]}'
    """
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]}…"


def in_words(names: Sequence[str]) -> str:
    """The names as a list in a sentence.

    >>> in_words(["alice", "bob", "carol"])
    'alice, bob and carol'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def nearest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The known name that is most similar to this one, if any is similar.

    >>> nearest("slurmd_optoins", ["slurmd_options", "slurm_config"])
    'slurmd_options'
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Advice that names the nearest known name, or else `otherwise`."""
    match = nearest(name, known)
    return f"Did you mean {match}?" if match else otherwise


def merged(found: Iterable[Problem]) -> list[Problem]:
    """Each problem once, with all the hosts and places where it occurs; those of the whole inventory first."""
    by_text: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in found:
        by_text.setdefault((problem.subject, problem.wrong, problem.advice), []).append(problem)
    unique = [
        dataclasses.replace(
            same[0],
            hosts=tuple(sorted({host for problem in same for host in problem.hosts})),
            origins=tuple(sorted({origin for problem in same for origin in problem.origins})),
        )
        for same in by_text.values()
    ]
    return sorted(unique, key=lambda problem: (bool(problem.hosts), problem.subject, problem.wrong))
