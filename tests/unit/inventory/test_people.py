"""What people.yml and the variables of the inventory say of each other."""

from __future__ import annotations

import pathlib
from typing import Any

from ansible.module_utils.slurmstead.inventory import people
from ansible.module_utils.slurmstead.inventory.model import Inventory, Variable

FILE = """\
groups: {course: 10001}
people:
- {name: ann, uid: 10002, group: course}
- {name: bob, uid: 10003, state: removed}
"""


def said(directory: pathlib.Path, **variables: Any) -> list[str]:
    """Return the problems of the file beside these variables, without its path."""
    (directory / "people.yml").write_text(FILE)
    hosts = {"node1": {name: Variable(value) for name, value in variables.items()}}
    found = people.problems(Inventory(groups={"control": ["node1"]}, hosts=hosts), str(directory), "control")
    return [
        str(problem).replace(problem.subject, "FILE") if "people.yml" in problem.subject else str(problem)
        for problem in found
    ]


def test_who_is_in_both_is_named(tmp_path: pathlib.Path) -> None:
    users = [{"name": "ann", "uid": 2001}]

    assert said(tmp_path, accounts_users=users) == ["FILE: ann is in accounts_users too. Remove one of them."]


def test_a_person_is_not_ansible(tmp_path: pathlib.Path) -> None:
    assert said(tmp_path, ansible_user="bob") == [
        "FILE: bob is the account with which Ansible logs in (ansible_user). Choose another name."
    ]
    assert said(tmp_path, ansible_user="ansible") == []


def test_a_value_of_another_type_hides_no_other_mistake(tmp_path: pathlib.Path) -> None:
    """The check of variables reports the type."""
    wrong = {name: 3 for name in ("celery_broker_users", "jupyterhub_administrators", "accounts_by_hand")}
    wrong |= {"sandbox_accounts": True, "shares_accounts": "x", "accounts_groups": "y"}  # type: ignore[dict-item]

    assert said(tmp_path, accounts_users=[{"name": "ann", "uid": 2001}], **wrong) == [
        "FILE: ann is in accounts_users too. Remove one of them."
    ]


def test_people_and_their_groups_may_use_the_broker(tmp_path: pathlib.Path) -> None:
    users = {"accounts_users": [{"name": "carl", "uid": 2001}], "accounts_groups": [{"name": "lab", "gid": 3000}]}

    assert (
        said(tmp_path, **users, celery_broker_users=["carl", "ann", "bob"], celery_broker_groups=["course", "lab"])
        == []
    )


def test_who_may_stop_notebooks_and_whose_jobs_need_an_image_exist(tmp_path: pathlib.Path) -> None:
    right = {"jupyterhub_administrators": ["ann", "ubuntu"], "sandbox_accounts": ["course", "staff", "bio"]}
    right |= {"login_administrators": ["ann", "ubuntu"]}
    assert said(tmp_path, accounts_by_hand=["ubuntu"], shares_accounts={"bio": {}}, **right) == []

    wrong = {"jupyterhub_administrators": ["anne"], "sandbox_accounts": ["curse"]}
    found = said(tmp_path, **wrong)
    assert [line.partition(" nor in ")[0] for line in found] == [
        "jupyterhub_administrators: has anne, which is neither in accounts_users",
        "sandbox_accounts: has curse, which is neither in shares_accounts",
    ]
    assert found[1].endswith("Did you mean course?")
    assert said(tmp_path, login_administrators=["an", "nagios"]) == [
        "login_administrators: has an, who is not a user. Did you mean ann?"
    ]


def test_notebooks_and_images_for_all_users_contradict_each_other(tmp_path: pathlib.Path) -> None:
    on: dict[str, Any] = {"jupyterhub_enabled": True, "sandbox_enabled": True, "sandbox_accounts": ["course"]}
    staff = {"accounts_users": [{"name": "carl", "uid": 2001}]}

    assert said(tmp_path, shares_template="course", **on) == [
        "sandbox_accounts: has the accounts of all users, but a notebook cannot run in an image. "
        "Use sandbox_partitions, or remove jupyterhub_enabled."
    ]
    assert said(tmp_path, shares_template="course", **staff, **on) == []
    own = {"jupyterhub_profiles": {"free": {"options": ["--account=free"]}}}
    assert said(tmp_path, shares_template="course", **own, **on) == []
    assert said(tmp_path, shares_template=["course"], **on) == []


def test_a_user_and_a_group_of_the_broker_that_do_not_exist_are_named(tmp_path: pathlib.Path) -> None:
    found = said(tmp_path, celery_broker_users=["anne"], celery_broker_groups=["xyz"])

    assert [line.partition(" is neither")[0] for line in found] == [
        "celery_broker_users: has anne, which",
        "celery_broker_groups: has xyz, which",
    ]
    assert found[0].endswith("Did you mean ann?") and found[1].endswith("Add xyz to one of them.")


def test_more_users_of_the_broker_than_ports_are_refused(tmp_path: pathlib.Path) -> None:
    users = [{"name": f"user{number}", "uid": 2001 + number, "groups": ["lab"]} for number in range(420)]
    given: dict[str, Any] = {"accounts_users": users, "accounts_groups": [{"name": "lab", "gid": 3000}]}
    given["celery_broker_groups"] = ["lab", "course"]

    assert said(tmp_path, **given) == [], "bob was removed"
    users.append({"name": "carl", "uid": 2999})
    assert said(tmp_path, **given, celery_broker_users=["carl"]) == [
        "celery_broker_users and celery_broker_groups: have 422 users, but the broker can have only 421. "
        "Remove users or a group."
    ]


def test_limits_are_of_users(tmp_path: pathlib.Path) -> None:
    assert said(tmp_path, shares_users={"anna": {"MaxJobs": 1}, "ann": {}, "zoe": {}}) == [
        "shares_users: has anna, who is not a user. Did you mean ann?"
    ]


def test_an_account_that_is_similar_to_a_declared_one_is_a_mistake(tmp_path: pathlib.Path) -> None:
    accounts = {"lab1": {"Parent": "labs"}}
    limits = {"ann": {"Account": "curse"}, "bob": {"Account": "lab2"}}

    assert said(tmp_path, shares_users=limits, shares_accounts=accounts) == [
        "shares_users: has Account: curse of ann, which is not declared. "
        "Write course if you mean that, or add curse to shares_accounts.",
    ]


def test_who_loses_all_shares_is_nobody_with_an_account(tmp_path: pathlib.Path) -> None:
    (found,) = said(tmp_path, shares_remove_users=["ann", "bob"])

    assert found.startswith("shares_remove_users: has ann, who is in ")
    assert found.endswith("Remove ann from one of the two.")
