# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""People who are not in the inventory, and rights that it does not give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.doctor.facts.people import NO_SHELL
from ansible.module_utils.slurmstead.doctor.finding import Cluster, Facts, Finding, both

AGREE = "run `stead up --tags accounts`"
DECIDE = "declare it in accounts_users, list it in accounts_by_hand, or lock it with `usermod --lock --expiredate 1`"


def accounts(cluster: Cluster) -> Iterator[Finding]:
    """Every account for people that can be used is in the inventory."""
    for name, facts in cluster.machines.items():
        people = facts["people"]
        for user in _strangers(cluster, facts):
            number = people["numbers"][user]
            if user in people["made"]:
                seen = f"{user} ({number}) left the inventory, but can still log in"
                yield Finding(name, "people", seen, AGREE)
            else:
                seen = f"the account {user} ({number}) is not in the inventory{_abilities(people, user)}"
                yield Finding(name, "people", seen, DECIDE)


def _strangers(cluster: Cluster, facts: Facts) -> list[str]:
    """Return the accounts of people that can be used, and that the inventory does not know."""
    people = facts["people"]
    known = cluster.users.keys() | cluster.by_hand | {*people["locked"]}
    return sorted(user for user, number in people["numbers"].items() if number and user not in known)


def _abilities(people: Mapping[str, Any], user: str) -> str:
    count = len(people["keys"].get(user, ())) + people["own_keys"].get(user, 0)
    has = [f"has {count} key{'s' * (count > 1)}"] * bool(count) + ["may use sudo"] * (user in people["sudo"])
    return f"; it {' and '.join(has)}" if has else ""


def returned(cluster: Cluster) -> Iterator[Finding]:
    """A declared user whom we locked out was let in again."""
    for name, facts in cluster.machines.items():
        for user, made in facts["people"]["made"].items():
            if made["left"] and user in cluster.users:
                yield Finding(name, "people", f"{user} is in the inventory, but still locked", AGREE)


def groups(cluster: Cluster) -> Iterator[Finding]:
    """The users whom we created are in the declared groups, and in no others."""
    for name, facts in cluster.machines.items():
        for user, made in facts["people"]["made"].items():
            if user not in cluster.users:
                continue
            wanted, there = {*cluster.users[user].groups}, {*made["groups"]}
            more, missing = sorted(there - wanted), sorted(wanted - there)
            for word, names in (("is in the group", more), ("is not in the group", missing)):
                if names:
                    seen = f"{user} {word} {', '.join(names)}, unlike in the inventory"
                    yield Finding(name, "members", seen, AGREE, both([name], "accounts"))


def keys(cluster: Cluster) -> Iterator[Finding]:
    """Nobody gets in with a key that the inventory does not have, except users with keys in their own homes."""
    for name, facts in cluster.machines.items():
        people = facts["people"]
        strangers = {*_strangers(cluster, facts)}
        for user, declared in cluster.users.items():
            wanted = [key.strip() for key in declared.keys if not re.search(NO_SHELL, key)]
            can_log_in = user in people["numbers"] and user not in people["locked"]
            if can_log_in and people["keys"].get(user, []) != wanted:
                seen = f"/etc/ssh/authorized_keys.d/{user} differs from the keys in the inventory"
                yield Finding(name, "keys", seen, AGREE)
        for user in sorted(people["keys"].keys() - cluster.users.keys() - cluster.by_hand - strangers):
            path = f"/etc/ssh/authorized_keys.d/{user}"
            yield Finding(name, "keys", f"{path} is for a user who is not in the inventory", f"remove {path}")
        count = people["own_keys"].get("root", 0)
        if count and "root" not in cluster.by_hand:
            seen = f"{count} key{'s' * (count > 1)} in /root/.ssh/authorized_keys can log in as root"
            yield Finding(name, "keys", seen, "remove them, or list root in accounts_by_hand")


def sudo(cluster: Cluster) -> Iterator[Finding]:
    """Only users with a declared right to sudo have it."""
    for name, facts in cluster.machines.items():
        strangers = {*_strangers(cluster, facts)}
        for user, group in facts["people"]["sudo"].items():
            if user == "root" or user in cluster.by_hand | strangers or user in facts["people"]["locked"]:
                continue
            declared = cluster.users.get(user)
            if declared is None or group not in {declared.group, *declared.groups}:
                how = f"through the group {group}" if group else "by a rule in sudoers"
                advice = (
                    "remove it, or list the account in accounts_by_hand"
                    if declared is None
                    else ("remove it, or give the user a group with that right in accounts_users")
                )
                yield Finding(
                    name,
                    "sudo",
                    f"{user} may use sudo {how}, which the inventory does not say",
                    advice,
                    both([name], "members"),
                )


def jobs(cluster: Cluster) -> Iterator[Finding]:
    """Users who left have no jobs, unless these were to go on."""
    for name, facts in cluster.machines.items():
        for user in facts["slurm"].get("users", ()):
            if facts["people"]["made"].get(user, {}).get("jobs"):
                yield Finding(name, "people", f"{user}, who left the inventory, has jobs", AGREE)
