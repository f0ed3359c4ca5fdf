"""Accounts: what is declared, and names and numbers that other accounts already have."""

from __future__ import annotations

import dataclasses
import grp
import pwd

import pytest

from ansible.module_utils.slurmstead.identity.accounts import (
    Group,
    Known,
    User,
    conflicts,
    known,
    missing_groups,
    wanted,
)

NODE = Known(
    users={"root": 0, "ubuntu": 1000, "alice": 2001},
    groups={"root": 0, "ubuntu": 1000, "alice": 2001, "chemistry": 3000},
    primary={"root": 0, "ubuntu": 1000, "alice": 2001},
)


def user(name: str, uid: int) -> User:
    return User(name, uid, name, (), "", "/bin/bash", ())


def test_a_user_has_a_group_of_its_own_name_and_number_unless_one_is_declared() -> None:
    groups, users = wanted([{"name": "chemistry", "gid": 3000}], [{"name": "alice", "uid": 2001}])

    assert groups == [Group("chemistry", 3000), Group("alice", 2001)]
    assert users == [User("alice", 2001, "alice", (), "", "/bin/bash", ())]


def test_a_declared_primary_group_is_taken() -> None:
    groups, users = wanted([{"name": "chemistry", "gid": 3000}], [{"name": "bob", "uid": 2002, "group": "chemistry"}])

    assert groups == [Group("chemistry", 3000)]
    assert users[0].group == "chemistry"


def test_everything_that_is_declared_of_a_user_is_kept() -> None:
    declared = {
        "name": "carol",
        "uid": "2003",
        "group": "users",
        "groups": ["chemistry", "video"],
        "comment": "Carol C.",
        "shell": "/bin/zsh",
        "keys": ["ssh-ed25519 AAAA carol"],
    }

    _, users = wanted([], [declared])

    expected = User("carol", 2003, "users", ("chemistry", "video"), "Carol C.", "/bin/zsh", ("ssh-ed25519 AAAA carol",))
    assert users == [expected]


def test_null_is_as_good_as_nothing() -> None:
    nothing = dict.fromkeys(("group", "groups", "comment", "shell", "keys"))

    assert wanted([], [{"name": "alice", "uid": 2001, **nothing}]) == wanted([], [{"name": "alice", "uid": 2001}])


@pytest.mark.parametrize(
    ("groups", "users"),
    [
        ([], []),
        ([Group("physics", 3001)], [user("bob", 2002)]),
        ([Group("chemistry", 3000)], [user("alice", 2001)]),
        ([Group("physics", 2002)], [user("bob", 3000)]),
    ],
    ids=["nobody", "new ones", "those that are there", "numbers of the other kind"],
)
def test_accounts_without_conflict_are_accepted(groups: list[Group], users: list[User]) -> None:
    assert conflicts(groups, users, NODE) == []


@pytest.mark.parametrize(
    ("groups", "users", "expected"),
    [
        (
            [],
            [user("bob", 1000)],
            "accounts_users: uid 1000 of bob belongs to ubuntu here; declare another uid for bob",
        ),
        (
            [],
            [user("alice", 2002)],
            "accounts_users: alice is declared with uid 2002, but has uid 2001 here; declare 2001, "
            "or change the ownership of its files to 2002 and run usermod",
        ),
        (
            [Group("physics", 1000)],
            [],
            "accounts_groups: gid 1000 of physics belongs to ubuntu here; declare another gid for physics",
        ),
        (
            [Group("chemistry", 3001)],
            [],
            "accounts_groups: chemistry is declared with gid 3001, but has gid 3000 here; declare 3000, "
            "or change the ownership of its files to 3001 and run groupmod",
        ),
        (
            [Group("chemistry", 3000)],
            [dataclasses.replace(user("alice", 2001), group="chemistry")],
            "accounts_users: alice is declared with the primary group chemistry (3000), but has alice (2001) here; "
            "declare that, or change the group of its files to 3000 and run usermod",
        ),
    ],
    ids=["uid taken", "user has another uid", "gid taken", "group has another gid", "user has another group"],
)
def test_a_conflict_names_both_sides_and_what_to_do(groups: list[Group], users: list[User], expected: str) -> None:
    assert conflicts(groups, users, NODE) == [expected]


def test_all_conflicts_are_said_at_once() -> None:
    groups, users = wanted([], [{"name": "bob", "uid": 1000}, {"name": "root", "uid": 2004}])

    assert len(conflicts(groups, users, NODE)) == 5


def test_a_group_that_does_not_exist_is_named() -> None:
    users = [dataclasses.replace(user("bob", 2002), groups=("chemistry", "dockr", "physics"))]

    assert missing_groups([Group("physics", 3001)], users, NODE) == [
        "accounts_users: bob is in the group dockr, which this machine does not have; correct the name, or declare the "
        "group in accounts_groups"
    ]


def test_what_a_node_knows_is_what_its_name_service_says() -> None:
    node = known()

    assert node.users["root"] == pwd.getpwnam("root").pw_uid == 0
    assert node.groups["nogroup"] == grp.getgrnam("nogroup").gr_gid
    assert node.primary["nobody"] == pwd.getpwnam("nobody").pw_gid
