# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The people of a site's people.yml beside the users and groups of its inventory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.accounting.wanted import TEMPLATES, Declared, account_name, wanted
from ansible.module_utils.slurmstead.identity.broker import REDIS_PORTS
from ansible.module_utils.slurmstead.inventory.model import Inventory, Problem, did_you_mean, nearest
from ansible.module_utils.slurmstead.inventory.relations.accounts import ANSIBLES
from ansible.module_utils.slurmstead.inventory.variables import SIMILAR
from ansible.module_utils.slurmstead.people import accounts, file
from ansible.module_utils.slurmstead.people.person import People, PeopleError, today

DIGITS = re.compile(r"[0-9]+")


def problems(inventory: Inventory, directory: str, control: str) -> Iterator[Problem]:
    """Yield the mistakes of the file in a directory, and what it has in common with the inventory but must not.

    :param control: the group whose host's variables are compared; they are the same on all hosts
    """
    path = Path(directory, file.NAME)
    name = os.path.relpath(path)
    try:
        people = file.read(path, name)
    except PeopleError as error:
        for mistake in error.mistakes:
            yield Problem(mistake.place, mistake.wrong, mistake.advice)
        return
    for host in list(inventory.groups.get(control, ()))[:1]:
        variables = inventory.hosts.get(host, {})
        # A value of another type is reported with the variables.
        given: dict[str, Any] = {
            key: variable.value for key, variable in variables.items() if isinstance(variable.value, (list, dict))
        }
        users, groups, by_hand = (given.get(f"accounts_{key}", ()) for key in ("users", "groups", "by_hand"))
        if all(isinstance(one, Mapping) for one in (*users, *groups)):
            yield from _clashes(people, name, users, groups, by_hand)
            login = str(variables["ansible_user"].value) if "ansible_user" in variables else ""
            if login in (one.name for one in people.people):
                yield Problem(people.place(name, login), f"{login} is {ANSIBLES}", "Choose another name")
            everyone = [*(str(user.get("name")) for user in users), *(one.name for one in people.people)]
            together = [*(str(group.get("name")) for group in groups), *people.groups]
            known_accounts = [*given.get("shares_accounts", ()), *TEMPLATES.values(), *map(account_name, together)]
            for variable, known, home in (
                ("celery_broker_users", everyone, "accounts_users"),
                ("celery_broker_groups", together, "accounts_groups"),
                ("jupyterhub_administrators", [*everyone, *by_hand], "accounts_users"),
                ("sandbox_accounts", known_accounts, "shares_accounts"),
            ):
                yield from _missing(variable, given.get(variable, ()), known, f"neither in {home} nor in {name}")
            active = [*filter(_is_readable, accounts.active(users)), *accounts.accounts(people, today())["users"]]
            yield from _too_many(given, active)
            yield from _wrong_accounts(given.get("shares_users", {}), known_accounts)
            values = {key: variable.value for key, variable in variables.items()}
            yield from _stopped_notebooks(values, accounts.share_people(active, [{"name": one} for one in together]))
            for variable in ("login_administrators", "shares_users"):
                yield from _typos(variable, given.get(variable, ()), [*everyone, *by_hand, login, "root"])
            names = {one.name for one in people.people if one.is_active(today())}
            for one in sorted(names & {*map(str, given.get("shares_remove_users", ()))}):
                yield Problem(
                    "shares_remove_users", f"has {one}, who is in {name}", f"Remove {one} from one of the two"
                )


def _is_readable(user: Mapping[str, Any]) -> bool:
    """Return whether a user has a name, and groups in a list; otherwise another check reports it."""
    return isinstance(user.get("name"), str) and isinstance(user.get("groups") or [], list)


def _stopped_notebooks(values: Mapping[str, Any], placed: Sequence[Mapping[str, str]]) -> Iterator[Problem]:
    """Yield why no notebook can start: the accounts of all users demand an image, and no profile has its own.

    :param placed: name and account of each user
    """
    template, limits = values.get("shares_template", "home"), values.get("shares_users", {})
    profiles = values.get("jupyterhub_profiles")
    is_wanted = values.get("jupyterhub_enabled") is True and values.get("sandbox_enabled") is True
    chosen = isinstance(profiles, Mapping) and any("--account" in str(profile) for profile in profiles.values())
    if not is_wanted or chosen or str(template) not in TEMPLATES or not isinstance(limits, Mapping):
        return
    limits = {name: keys for name, keys in limits.items() if isinstance(keys, Mapping)}
    used = {user.account for user in wanted(Declared(template, people=placed, users=limits)).users.values()}
    demanding = values.get("sandbox_accounts")
    if used and isinstance(demanding, list) and used <= {*map(str, demanding)}:
        wrong = "has the accounts of all users, but a notebook cannot run in an image"
        yield Problem("sandbox_accounts", wrong, "Use sandbox_partitions, or remove jupyterhub_enabled")


def _missing(variable: str, wanted: Sequence[str], known: Sequence[str], where: str) -> Iterator[Problem]:
    """Yield the users, groups or accounts that do not exist."""
    for one in wanted:
        if one not in known:
            advice = did_you_mean(str(one), known, f"Add {one} to one of them")
            yield Problem(variable, f"has {one}, which is {where}", advice)


def _too_many(given: Mapping[str, Any], active: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield that the broker has more users than ports."""
    names, groups = (given.get(f"celery_broker_{key}", ()) for key in ("users", "groups"))
    number = len(accounts.broker_accounts(names, groups, active))
    if number > len(REDIS_PORTS):
        wrong = f"have {number} users, but the broker can have only {len(REDIS_PORTS)}"
        yield Problem("celery_broker_users and celery_broker_groups", wrong, "Remove users or a group")


def _wrong_accounts(limits: Mapping[str, Any], known: Sequence[str]) -> Iterator[Problem]:
    """Yield the accounts of users that look like misspelt ones, not like another number; others are new ones."""
    for name, keys in limits.items() if isinstance(limits, Mapping) else ():
        account = str(keys.get("Account") or "") if isinstance(keys, Mapping) else ""
        match = nearest(account, known, cutoff=SIMILAR)
        if account not in known and match and DIGITS.sub("", account) != DIGITS.sub("", match):
            wrong = f"has Account: {account} of {name}, which is not declared"
            yield Problem("shares_users", wrong, f"Write {match} if you mean that, or add {account} to shares_accounts")


def _typos(variable: str, wanted: Sequence[str], known: Sequence[str]) -> Iterator[Problem]:
    """Yield the names that are similar to those of users; others may be of accounts that only control has."""
    for one in map(str, wanted):
        if one not in known and (match := nearest(one, known)):
            yield Problem(variable, f"has {one}, who is not a user", f"Did you mean {match}?")


def _clashes(
    people: People,
    name: str,
    users: Sequence[Mapping[str, Any]],
    groups: Sequence[Mapping[str, Any]],
    by_hand: Sequence[str],
) -> Iterator[Problem]:
    user_names = {str(user.get("name")) for user in users}
    group_names = {str(group.get("name")) for group in groups}
    numbers = {str(user.get("uid")): f"{user.get('name')} in accounts_users" for user in users}
    numbers |= {str(group.get("gid")): f"{group.get('name')} in accounts_groups" for group in groups}
    for one in people.people:
        place = people.place(name, one.name)
        if one.name in user_names:
            yield Problem(place, f"{one.name} is in accounts_users too", "Remove one of them")
        elif one.name in group_names:
            yield Problem(place, f"{one.name} is the name of a group in accounts_groups", "Rename one of them")
        elif str(one.uid) in numbers:
            wrong = f"uid: {one.uid} is the number of {numbers[str(one.uid)]}"
            yield Problem(place, wrong, "Give one of them another number")
        if one.name in by_hand:
            yield Problem(place, f"{one.name} is in accounts_by_hand too", "Remove one of them")
        if one.group and one.group not in people.groups and one.group not in group_names:
            advice = did_you_mean(
                one.group, [*people.groups, *group_names], f"Add {one.group} with its gid to groups in {name}"
            )
            yield Problem(place, f"{one.name} has the group {one.group}, which is not defined", advice)
    for group, gid in people.groups.items():
        if group in group_names or group in user_names:
            yield Problem(name, f"groups: {group} is also in the inventory", "Remove one of them")
        elif str(gid) in numbers:
            yield Problem(
                name, f"groups: {gid} is the number of {numbers[str(gid)]}", "Give one of them another number"
            )
