# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for users and groups."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import Violation, in_words, nearest, shown
from ansible.module_utils.slurmstead.people.person import check_name, is_date, is_public_key

Users = Sequence[Mapping[str, Any]]

ANSIBLES = "the account with which Ansible logs in (ansible_user)"


def user_names_are_valid(accounts_users: Users) -> Iterator[Violation]:
    """Every tool accepts a user's name, and the system itself does not use it."""
    yield from _name_violations("accounts_users", accounts_users)


def group_names_are_valid(accounts_groups: Users) -> Iterator[Violation]:
    """As for users."""
    yield from _name_violations("accounts_groups", accounts_groups)


def user_names_and_ids_differ(accounts_users: Users) -> Iterator[Violation]:
    """Two users with one uid are one user; two entries for one name contradict each other."""
    yield from _duplicates("accounts_users", accounts_users, "uid")


def group_names_and_ids_differ(accounts_groups: Users) -> Iterator[Violation]:
    """As for users."""
    yield from _duplicates("accounts_groups", accounts_groups, "gid")


def user_ids_are_free(accounts_users: Users) -> Iterator[Violation]:
    """On some nodes, IDs that distributions reserve belong to other accounts."""
    yield from _reserved_ids("accounts_users", accounts_users, "uid")


def group_ids_are_free(accounts_groups: Users) -> Iterator[Violation]:
    """As for users."""
    yield from _reserved_ids("accounts_groups", accounts_groups, "gid")


def groups_of_users_exist(accounts_users: Users, accounts_groups: Users) -> Iterator[Violation]:
    """A user's primary group must have the same gid on every node, so accounts_groups must define it."""
    known = [str(group["name"]) for group in accounts_groups]
    for user in accounts_users:
        group = user.get("group")
        if group and group not in known:
            match = nearest(str(group), known)
            advice = f"Did you mean {match}?" if match else f"Add {group} with its gid to accounts_groups"
            yield "accounts_users", f"{user['name']} has the group {group}, which is not in accounts_groups", advice


def groups_of_their_own_are_free(accounts_users: Users, accounts_groups: Users) -> Iterator[Violation]:
    """A user without `group` gets a group with the same name and number, so no other group may use either."""
    for user, group in itertools.product(accounts_users, accounts_groups):
        same = (str(user["name"]) == str(group["name"]), int(user["uid"]) == int(group["gid"]))
        if not user.get("group") and same in ((True, False), (False, True)):
            yield (
                "accounts_users",
                f"{user['name']} needs a group {user['name']} with the gid {user['uid']}, "
                f"but accounts_groups has {group['name']} with {group['gid']}",
                f"Set group of {user['name']}, or change accounts_groups",
            )


def accounts_by_hand_are_others(accounts_users: Users, accounts_by_hand: Sequence[str]) -> Iterator[Violation]:
    """An account is managed by the inventory or by hand: one in both lists would never be locked or reported."""
    for name in sorted({str(user["name"]) for user in accounts_users} & {*accounts_by_hand}):
        yield "accounts_by_hand", f"has {name}, who is in accounts_users", "Remove one of them"


def users_are_not_ansible(accounts_users: Users, ansible_user: str) -> Iterator[Violation]:
    """Ansible's account can become root, and usermod(8) moves no home of an account that is logged in."""
    if any(str(user["name"]) == str(ansible_user) for user in accounts_users):
        yield "accounts_users", f"has {ansible_user}, {ANSIBLES}", "Choose another name"


def the_first_account_can_become_root(bootstrap_user: str) -> Iterator[Violation]:
    """sudo ignores files in /etc/sudoers.d whose names contain a dot."""
    if "." in bootstrap_user:
        wrong = f"is {bootstrap_user}, but sudo ignores files with a dot in their names, so it could not become root"
        yield "bootstrap_user", wrong, "Choose a name without a dot"


def keys_are_public_keys(accounts_users: Users) -> Iterator[Violation]:
    """A private key, a file name or a half key in an inventory would lock the user out. Keys are not repeated."""
    for user in accounts_users:
        for number, key in enumerate(user.get("keys") or [], start=1):
            if "PRIVATE KEY" in str(key):
                yield (
                    "accounts_users",
                    f"key {number} of {user['name']} is a private key",
                    "Write the public key, which is in the file that ends in .pub, and replace the private key",
                )
            elif not is_public_key(str(key)):
                yield (
                    "accounts_users",
                    f"key {number} of {user['name']} is not a complete public key",
                    "Write one line such as: ssh-ed25519 AAAA… comment",
                )


def expiry_dates_are_dates(accounts_users: Users) -> Iterator[Violation]:
    """useradd(8) takes other texts for days that no author meant."""
    for user in accounts_users:
        text = str(user.get("expires") or "")
        if text and not is_date(text):
            advice = 'Write year, month and day, in quotes, such as "2027-02-28"'
            yield "accounts_users", f"{user['name']} expires on {shown(text)}, which is not a date", advice


def comments_and_shells_are_possible(accounts_users: Users) -> Iterator[Violation]:
    """useradd(8) refuses others on the machines, after the run has begun."""
    for user in accounts_users:
        comment, shell = str(user.get("comment") or ""), str(user.get("shell") or "/")
        if ":" in comment or not comment.isprintable():
            wrong = f"the comment {shown(comment)} of {user['name']} contains a colon or a control character"
            yield "accounts_users", wrong, "Remove it (passwd(5))"
        if not shell.startswith("/"):
            yield "accounts_users", f"the shell of {user['name']} is {shown(shell)}", "Write its path, as in /bin/bash"


def _name_violations(variable: str, entries: Users) -> Iterator[Violation]:
    for entry in entries:
        for wrong, advice in check_name(str(entry["name"])):
            yield variable, wrong.removeprefix("name: "), advice


def _duplicates(variable: str, entries: Users, number: str) -> Iterator[Violation]:
    for name, count in Counter(str(entry["name"]) for entry in entries).items():
        if count > 1:
            yield variable, f"has {name} {count} times", "Remove all entries but one"
    holders: dict[int, set[str]] = {}
    for entry in entries:
        if entry.get(number) is not None:
            holders.setdefault(int(entry[number]), set()).add(str(entry["name"]))
    for value, names in holders.items():
        if len(names) > 1:
            yield variable, f"gives the {number} {value} to {in_words(sorted(names))}", f"Give each its own {number}"


def _reserved_ids(variable: str, entries: Users, number: str) -> Iterator[Violation]:
    for entry in entries:
        if entry.get(number) is None:
            continue
        value = int(entry[number])
        # Debian Policy 9.2.2; 64030 is slurm's, 65534 nobody's. 32-bit -1 and -2 mean "no user" (chown(2)).
        if value < 1000:
            wrong = "is below 1000, which is reserved for the system"
        elif 60000 <= value <= 65535:
            wrong = {64030: "is the user slurm's", 65534: "is the user nobody's"}.get(value, "is reserved by Debian")
        elif value >= 2**32 - 2:
            wrong = "is too large"
        else:
            continue
        yield variable, f"the {number} {value} of {entry['name']} {wrong}", "Choose one from 1000 to 59999"
