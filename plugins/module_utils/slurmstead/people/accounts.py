# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The accounts of the people who may use the cluster today, as the role `accounts` declares them, and their groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.slurmstead.people.person import People, today


def accounts(people: People, day: str) -> dict[str, list[Any]]:
    """Return groups and users like accounts_groups and accounts_users, without people who were removed or expired.

    `expired` are the names of the latter, whose jobs go on.

    :param day: in UTC, as 2027-02-28
    """
    users = [
        {
            "name": one.name,
            "uid": one.uid,
            "groups": [one.group] if one.group else [],
            "comment": one.full_name,
            "keys": list(one.keys),
            "expires": one.expires,
            "in_people": True,
        }
        for one in people.people
        if one.is_active(day)
    ]
    expired = [one.name for one in people.people if one.state == "active" and not one.is_active(day)]
    groups = [{"name": name, "gid": gid} for name, gid in people.groups.items()]
    return {"groups": groups, "users": users, "expired": expired}


def active(users: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the users of accounts_users whose time is not over today."""
    return [user for user in users if not user.get("expires") or str(user["expires"]) > today()]


def share_people(users: Iterable[Mapping[str, Any]], groups: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the users for the role `shares`: each counts for the first of its groups that is declared.

    >>> share_people([{"name": "ann", "groups": ["sudo", "bio"]}, {"name": "bob"}], [{"name": "bio", "gid": 3001}])
    [{'name': 'ann', 'account': 'bio'}, {'name': 'bob', 'account': ''}]
    """
    known = {group["name"] for group in groups}
    return [
        {"name": user["name"], "account": next((group for group in _groups(user) if group in known), "")}
        for user in users
    ]


def broker_accounts(names: Iterable[str], groups: Iterable[str], users: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the users of the broker: those of these names, and those in these groups, while they may log in.

    >>> ann, bob = {"name": "ann", "groups": ["bio"]}, {"name": "bob", "groups": ["bio"], "expires": "2020-01-01"}
    >>> broker_accounts(["carl", "dan"], ["bio"], [ann, bob, {"name": "dan"}])
    ['dan', 'ann']
    """
    known, wanted = {user["name"]: user for user in active(users)}, {*map(str, groups)}
    members = [name for name, user in known.items() if wanted.intersection(_groups(user))]
    return list(dict.fromkeys([*(name for name in map(str, names) if name in known), *members]))


def _groups(user: Mapping[str, Any]) -> list[str]:
    return [*([str(user["group"])] if user.get("group") else []), *map(str, user.get("groups") or [])]
