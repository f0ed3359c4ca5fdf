# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Users and groups with the same numeric IDs on all nodes: existing ones, declared ones, and their conflicts."""

from __future__ import annotations

import collections
import dataclasses
import grp
import pwd
from collections.abc import Collection, Iterable, Mapping
from typing import Any

SHELL = "/bin/bash"

FIRST_PERSON = 1000


def is_person(number: int) -> bool:
    """Return whether a numeric ID is for ordinary users; Debian's own accounts have the others (Policy 9.2.2).

    >>> [is_person(number) for number in (999, 1000, 60000, 65534, 70001)]
    [False, True, False, False, True]
    """
    return FIRST_PERSON <= number < 60000 or number > 65535


@dataclasses.dataclass(frozen=True)
class Group:
    """A declared group."""

    name: str
    gid: int


@dataclasses.dataclass(frozen=True)
class User:
    """A declared user; `group` is the primary group's name, `groups` are further groups."""

    name: str
    uid: int
    group: str
    groups: tuple[str, ...]
    comment: str
    shell: str
    keys: tuple[str, ...]
    expires: str = ""
    """first day, in UTC, on which the account is locked; empty for never"""
    in_people: bool = False
    """declared in people.yml, not in accounts_users"""


def wanted(groups: Iterable[Mapping[str, Any]], users: Iterable[Mapping[str, Any]]) -> tuple[list[Group], list[User]]:
    """Return the declared groups and users; a user without a group gets one with the user's name and number."""
    all_groups = [Group(group["name"], int(group["gid"])) for group in groups]
    all_users = []
    for user in users:
        uid = int(user["uid"])
        if not user.get("group"):
            all_groups.append(Group(user["name"], uid))
        all_users.append(
            User(
                name=user["name"],
                uid=uid,
                group=user.get("group") or user["name"],
                groups=tuple(user.get("groups") or ()),
                comment=user.get("comment") or "",
                shell=user.get("shell") or SHELL,
                keys=tuple(user.get("keys") or ()),
                expires=str(user.get("expires") or ""),
                in_people=bool(user.get("in_people")),
            )
        )
    return all_groups, all_users


@dataclasses.dataclass(frozen=True)
class Known:
    """The accounts in a node's name service."""

    users: dict[str, int]
    """Numeric id by name."""
    groups: dict[str, int]
    """Numeric id by name."""
    primary: dict[str, int]
    """Numeric id of the primary group by name of the user."""
    homes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Home directory by name of the user."""
    members: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    """Names of the further groups by name of the user; users without one are left out."""


def known() -> Known:
    """Return the users and groups of this node."""
    users, groups = pwd.getpwall(), grp.getgrall()
    members = collections.defaultdict(set)
    for group in groups:
        for member in group.gr_mem:
            members[member].add(group.gr_name)
    return Known(
        users={user.pw_name: user.pw_uid for user in users},
        groups={group.gr_name: group.gr_gid for group in groups},
        primary={user.pw_name: user.pw_gid for user in users},
        homes={user.pw_name: user.pw_dir for user in users},
        members={name: frozenset(there) for name, there in members.items()},
    )


def conflicts(groups: Iterable[Group], users: Iterable[User], node: Known, departed: Collection[str] = ()) -> list[str]:
    """Return why the wanted accounts cannot be created: IDs and names of other accounts. Nothing is renumbered.

    :param departed: names of the accounts whose users left the inventory; they keep their numbers
    """
    groups, users = list(groups), list(users)
    problems = []
    kinds = (
        ("accounts_groups", "gid", "groupmod", [(group.name, group.gid) for group in groups], node.groups),
        ("accounts_users", "uid", "usermod", [(user.name, user.uid) for user in users], node.users),
    )
    for variable, label, command, pairs, there in kinds:
        owners = {number: name for name, number in there.items()}
        for name, number in pairs:
            if name in there and there[name] != number:
                problems.append(
                    f"{variable}: {name} is declared with {label} {number}, but has {label} {there[name]} here; "
                    f"declare {there[name]}, or change the ownership of its files to {number} and run {command}"
                )
            elif name not in there and number in owners and owners[number] in departed:
                owner = owners[number]
                problems.append(
                    f"{variable}: {label} {number} of {name} stays reserved for {owner}, who left the inventory, "
                    f"because files of {owner} have it; declare another {label} for {name}"
                )
            elif name not in there and number in owners:
                problems.append(
                    f"{variable}: {label} {number} of {name} belongs to {owners[number]} here; "
                    f"declare another {label} for {name}"
                )
    numbers = {group.name: group.gid for group in groups}
    names = {gid: name for name, gid in node.groups.items()}
    for user in users:
        wanted_gid, gid = numbers.get(user.group), node.primary.get(user.name)
        if wanted_gid is None or gid is None or wanted_gid == gid:
            continue
        problems.append(
            f"accounts_users: {user.name} is declared with the primary group {user.group} ({wanted_gid}), but has "
            f"{names.get(gid, 'one without a name')} ({gid}) here; declare that, or change the group of its "
            f"files to {wanted_gid} and run usermod"
        )
    return problems


def missing_groups(groups: Iterable[Group], users: Iterable[User], node: Known) -> list[str]:
    """Return which users are in groups that are neither declared nor on this node. Packages create some groups."""
    known_names = {group.name for group in groups} | node.groups.keys()
    return [
        f"accounts_users: {user.name} is in the group {name}, which this machine does not have; correct the name, or "
        "declare the group in accounts_groups"
        for user in users
        for name in sorted({*user.groups} - known_names)
    ]
