"""What an inventory wants of accounts, users and QOS, and the commands that bring it about."""

from __future__ import annotations

from typing import Any

import pytest

from ansible.module_utils.slurmstead.accounting import difference, limits
from ansible.module_utils.slurmstead.accounting.difference import Present
from ansible.module_utils.slurmstead.accounting.wanted import Declared, slurm_config, wanted

ANN, BOB = {"name": "ann", "account": "Bio"}, {"name": "bob", "account": ""}


def commands(declared: Declared, present: Present | None = None, logins: tuple[str, ...] = ()) -> list[str]:
    return [one.command for one in difference.changes("c", wanted(declared, logins), present or Present())]


def made(declared: Declared, **more: Any) -> Present:
    """What the database has after all is done."""
    whole = wanted(declared)
    return Present(
        qos={name: {key: limits.text(value) for key, value in keys.items()} for name, keys in whole.qos.items()},
        accounts={
            name: {key: limits.text(value) for key, value in keys.items()} for name, keys in whole.accounts.items()
        },
        parents=whole.parents,
        users={(user.account, name): {} for name, user in whole.users.items()},
        defaults={name: user.account for name, user in whole.users.items()},
        **more,
    )


def test_at_home_all_are_in_one_account_without_limits() -> None:
    assert commands(Declared(people=(ANN, BOB)), logins=("debian",)) == [
        "add account home parent=root cluster=c Description=home Organization=home",
        "add user name=ann,bob,debian account=home cluster=c",
    ]


def test_in_a_lab_each_group_is_an_account() -> None:
    found = wanted(Declared("lab", people=(ANN, BOB), accounts={"bio": {"Parent": "uni", "Fairshare": 3}}))

    assert {name: user.account for name, user in found.users.items()} == {"ann": "bio", "bob": "users"}
    assert found.parents == {"bio": "uni", "uni": "root", "users": "root"}
    assert found.accounts["bio"] == {"QOS": ["normal", "low"], "DefaultQOS": "normal", "Fairshare": 3}
    assert found.accounts["users"] == {"QOS": ["normal", "low"], "DefaultQOS": "normal"}


def test_in_a_course_students_are_limited_and_staff_is_not() -> None:
    found = wanted(Declared("course", people=(ANN, BOB), qos={"course": {"MaxJobsPerUser": 2, "Flags": None}}))

    assert found.accounts == {
        "bio": {"QOS": ["course"], "DefaultQOS": "course"},
        "staff": {"QOS": ["normal", "low"], "DefaultQOS": "normal"},
    }
    limits = {"Flags": None, "MaxJobsPerUser": 2, "MaxSubmitJobsPerUser": 100, "MaxTRESPerUser": "cpu=8"}
    assert found.qos == {"course": {**limits, "MaxWall": "4:00:00"}, "low": {**dict.fromkeys(limits), "MaxWall": None}}


def test_jobs_that_give_way_have_a_qos_that_all_others_interrupt() -> None:
    found = wanted(Declared("course", low="requeue", people=(ANN,)))

    assert found.qos["low"].items() >= {("Priority", 0), ("PreemptMode", "requeue")}
    assert found.accounts["bio"]["QOS"] == ["course", "low"]
    assert {name for name, keys in found.qos.items() if keys.get("Preempt") == "low"} == {"normal", "course"}
    assert found.accounts["staff"]["QOS"] == ["normal", "low"]


def test_students_have_limits_of_their_own_in_low() -> None:
    own = {"MaxWall": None, "MaxTRESPerJob": "mem=4G", "GrpJobs": 9, "Priority": 7}
    found = wanted(Declared("course", low="wait", people=(ANN,), qos={"course": own}))

    assert found.qos["low"] == {
        **{"Flags": "DenyOnLimit", "MaxJobsPerUser": 8, "MaxSubmitJobsPerUser": 100, "MaxTRESPerUser": "cpu=8"},
        **{"MaxWall": None, "MaxTRESPerJob": "mem=4G", "Priority": 0},
    }


def test_students_who_are_no_longer_declared_keep_their_limits_in_low() -> None:
    there = made(Declared("course", low="wait", people=(ANN,)))

    assert [line for line in commands(Declared("course", low="wait"), there) if "qos" in line] == []


@pytest.mark.parametrize("template", ["home", "lab"])
def test_after_a_course_low_has_no_limits_unless_the_inventory_has_them(template: str) -> None:
    own = {"course": {"MaxTRESPerJob": "mem=4G", "GrpJobs": 9}}
    there = made(Declared("course", low="wait", people=(ANN,), qos=own))
    after = Declared(template, low="wait", people=(ANN,), qos={**own, "low": {"MaxWall": "2:00:00"}})
    found = [line for line in commands(after, there) if "qos where name=low" in line]

    assert found == [
        "modify qos where name=low set Flags=-1 MaxJobsPerUser=-1 MaxSubmitJobsPerUser=-1 MaxTRESPerJob=mem=-1"
        " MaxTRESPerUser=cpu=-1 MaxWall=2:00:00"
    ]
    assert commands(after, made(after)) == []


def test_where_students_may_not_give_way_low_has_no_limits_of_theirs() -> None:
    found = commands(Declared("course", people=(ANN,)), made(Declared("course", low="wait", people=(ANN,))))

    assert found[0].startswith("modify qos where name=low set Flags=-1 MaxJobsPerUser=-1")


def test_a_new_qos_comes_in_a_process_of_its_own() -> None:
    changes = difference.changes("c", wanted(Declared(low="requeue", people=(ANN,))), Present(qos={"normal": {}}))

    assert [[change.command.split()[1] for change in part] for part in difference.batches(changes)] == [
        ["qos"],
        ["qos", "account", "user"],
    ]


def test_what_is_there_needs_no_command() -> None:
    declared = Declared("course", low="wait", people=(ANN, BOB), accounts={"bio": {"GrpTRES": {"cpu": 8}}})

    assert commands(declared, made(declared)) == []


def test_what_is_there_besides_stays() -> None:
    declared = Declared("lab", people=(ANN,))
    present = made(declared)
    more = {("bio", "carl"): {"MaxJobs": "3"}, ("guests", "ann"): {}}
    accounts = {**present.accounts, "guests": {"MaxJobs": "1"}}

    assert (
        commands(declared, Present({**present.qos, "gpu": {}}, accounts, present.parents, {**present.users, **more}))
        == []
    )


def test_who_changes_groups_gets_a_new_default_account() -> None:
    before, after = Declared("lab", people=(ANN,)), Declared("lab", people=({**ANN, "account": "physics"},))

    assert commands(after, made(before)) == [
        "add account physics parent=root cluster=c Description=physics Organization=physics QOS=normal,low"
        " DefaultQOS=normal",
        "add user name=ann account=physics cluster=c",
        "modify user where name=ann cluster=c set DefaultAccount=physics",
    ]


def test_students_get_no_more_jobs_in_accounts_without_the_limits_of_the_course() -> None:
    course = Declared("course", people=(ANN, BOB))
    there, free, limited = made(course), {"GrpSubmitJobs": ""}, {"QOS": "course,low"}
    accounts = {**there.accounts, "physics": {"QOS": "normal,low"}, "chemistry": limited}
    users = {**there.users, ("physics", "ann"): free, ("chemistry", "ann"): free, ("physics", "bob"): free}
    present = Present(there.qos, accounts, there.parents, users, there.defaults)

    assert commands(course, present) == ["modify user where name=ann account=physics cluster=c set GrpSubmitJobs=0"]


def test_jobs_that_wait_with_a_qos_that_their_account_loses_are_named() -> None:
    lab, course = Declared("lab", people=(ANN, BOB)), wanted(Declared("course", people=(ANN, BOB)))
    queue = "10|ann|bio|normal\n9|ann|bio|normal\n9|ann|bio|normal\n11|ann|bio|course\n12|bob|staff|low\n13|eve||\n"

    assert [*difference.stranded(course, made(lab), queue)] == [
        "jobs 9, 10 of account bio may never start (InvalidQOS), because of the QOS normal: with these shares the "
        "account has only course. When they are set, run `squeue --all --noheader --states=PENDING --account=bio "
        "--qos=normal --format=%F | sort -u | xargs -I JOB scontrol update JobId=JOB QOS=course` as root, or cancel "
        "the jobs"
    ]
    assert [*difference.stranded(wanted(lab), made(lab), queue.replace("|course", "|low"))] == []


def test_jobs_of_an_account_below_another_have_its_qos() -> None:
    declared = Declared("lab", people=(ANN,), accounts={"bio": {"Parent": "uni"}})
    queue = "7|ann|bio|course\n8|ann|bio|low\n"
    found = [*difference.stranded(wanted(declared), made(declared), queue)]

    assert [line.partition(" of ")[0] for line in found] == ["job 7"]
    assert "has only normal, low. " in found[0]


@pytest.mark.parametrize(
    ("account", "user"), [({"QOS": "+gpu"}, {}), ({}, {"QOS": "gpu"})], ids=["a difference", "a user's own"]
)
def test_jobs_whose_qos_an_administrator_allowed_are_not_named(account: dict[str, str], user: dict[str, str]) -> None:
    declared = Declared("lab", people=(ANN,), accounts={"bio": {"Parent": "uni", **account}})
    there = made(declared)
    present = Present(there.qos, there.accounts, there.parents, {("bio", "ann"): user})

    assert [*difference.stranded(wanted(declared), present, "7|ann|bio|gpu\n")] == []


def test_an_account_of_a_lab_that_moved_below_another_is_limited_in_a_course() -> None:
    cs = {"name": "ann", "account": "cs"}
    lab, below = Declared("lab", people=(cs,)), {"cs": {"Parent": "school"}}
    moved, course = Declared("lab", people=(cs,), accounts=below), Declared("course", people=(cs,), accounts=below)

    assert commands(moved, made(lab)) == [
        "add account school parent=root cluster=c Description=school Organization=school QOS=normal,low"
        " DefaultQOS=normal",
        "modify account where name=cs cluster=c set parent=school",
    ]
    assert "modify account where name=cs cluster=c set QOS=course DefaultQOS=course" in commands(course, made(moved))
    assert commands(course, made(course)) == []


@pytest.mark.parametrize(
    ("accounts", "allowed"),
    [
        ({"cs": {"Parent": "school"}, "school": {"QOS": "gpu", "DefaultQOS": "gpu"}}, "gpu"),
        ({"cs": {"Parent": "school", "QOS": "gpu"}, "school": {"QOS": "normal"}}, "gpu"),
        ({"cs": {"Parent": "helpers"}, "helpers": {"Parent": "staff"}}, ["normal", "low"]),
        ({"cs": {"Parent": "year"}, "year": {"Parent": "school"}}, ["course"]),
        ({"cs": {"Parent": "staff"}, "staff": {"Parent": "school"}}, ["normal", "low"]),
    ],
    ids=["its parent's", "its own", "that of staff", "that of students", "that of staff below another"],
)
def test_an_account_below_another_has_the_declared_qos_or_that_of_the_template(
    accounts: dict[str, dict[str, str]], allowed: str | list[str]
) -> None:
    assert wanted(Declared("course", people=(ANN,), accounts=accounts)).accounts["cs"]["QOS"] == allowed


def test_an_account_moves_and_changes_in_two_commands() -> None:
    before = Declared("lab", people=(ANN,), accounts={"uni": {}})
    after = Declared("lab", people=(ANN,), accounts={"uni": {}, "bio": {"Parent": "uni", "MaxJobs": 4}})

    assert commands(after, made(before)) == [
        "modify account where name=bio cluster=c set parent=uni",
        "modify account where name=bio cluster=c set MaxJobs=4",
    ]


def test_an_account_without_a_declared_parent_stays_where_an_administrator_put_it() -> None:
    present = made(Declared("lab", people=(ANN,)))
    moved = Present(present.qos, present.accounts, {**present.parents, "bio": "uni"}, present.users, present.defaults)

    assert commands(Declared("lab", people=(ANN,)), moved) == []
    assert commands(Declared("lab", people=(ANN,), accounts={"bio": {"Parent": None}}), moved) == [
        "modify account where name=bio cluster=c set parent=root"
    ]


def test_a_thousand_users_are_one_command() -> None:
    people = tuple({"name": f"u{number}", "account": "course"} for number in range(1000))

    found = difference.changes("c", wanted(Declared("course", people=people)), Present())

    assert [change.line for change in found if "user" in change.line] == [
        "+ users u0, u1, u10, u100, u101, u102, u103, u104 and 992 more in account course"
    ]


def test_removal_is_told_and_finds_what_is_there() -> None:
    found = difference.removals("c", ["ann", "zoe"], ["bio", "none"], made(Declared("lab", people=(ANN,))))

    assert [change.line for change in found] == ["- user ann", "- account bio"]


def test_an_account_is_removed_before_its_parent() -> None:
    present = made(Declared(accounts={"a": {}, "b": {"Parent": "a"}}))

    assert [one.line for one in difference.removals("c", [], ["a", "b"], present)] == ["- account b", "- account a"]


def test_an_account_that_is_needed_is_not_removed() -> None:
    declared = Declared("lab", people=(ANN,), accounts={"bio": {"Parent": "uni"}, "spare": {}})
    present = made(declared)
    more = Present(present.qos, present.accounts, {**present.parents, "own": "guests", "guests": "root"}, {}, {})

    def refused(*accounts: str) -> list[str]:
        return [*difference.needed(accounts, wanted(declared), more)]

    assert refused("bio", "uni", "spare", "guests") == [
        "bio, the account of user ann",
        "guests, which is above own",
        "spare, which is declared or belongs to the template",
        "uni, which is declared or belongs to the template",
    ]
    assert refused("uni") == ["uni, which is above bio"]
    assert refused("guests", "own", "home") == []


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        (limits.QOS["MaxWall"], "1-00:00:00", "1440"),
        (limits.QOS["MaxWall"], "1-0", "24:00:00"),
        (limits.QOS["Flags"], "DenyOnLimit,NoReserve", "noreserve,denyonlimit"),
        (limits.QOS["MaxTRESPerUser"], "cpu=8,mem=1T", "mem=1024G,cpu=8"),
        (limits.QOS["UsageFactor"], "1.000000", "1"),
        (limits.ASSOCIATION["Fairshare"], "PARENT", "parent"),
        (limits.QOS["GraceTime"], "120", "00:02:00"),
    ],
)
def test_two_ways_to_write_a_value_are_the_same(key: limits.Key, one: str, other: str) -> None:
    assert limits.meaning(key, one) == limits.meaning(key, other) is not None


@pytest.mark.parametrize("value", ["a b", "1\nremove user where name=ann", "'x'"])
def test_a_value_cannot_end_its_command(value: str) -> None:
    assert limits.wrong(limits.QOS["Flags"], value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (limits.QOS["MaxJobsPerUser"], -1),
        (limits.QOS["MaxJobsPerUser"], 2.5),
        (limits.QOS["MaxJobsPerUser"], "parent"),
        (limits.QOS["UsageFactor"], -1),
        (limits.QOS["MaxWall"], "0:00:30"),
        (limits.QOS["GraceTime"], "0:02:00"),
        (limits.QOS["MaxTRESPerUser"], "cpu"),
        (limits.QOS["MaxTRESPerUser"], {"cpu": -1}),
        (limits.QOS["MaxTRESPerUser"], "mem=1.5G"),
    ],
)
def test_a_value_that_slurm_would_round_or_refuse_is_wrong(key: limits.Key, value: Any) -> None:
    assert limits.wrong(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (limits.QOS["UsageFactor"], 0.5),
        (limits.QOS["GraceTime"], 120),
        (limits.QOS["MaxTRESPerUser"], {"gres/gpu:a100": 2, "mem": "4g"}),
        (limits.ASSOCIATION["Fairshare"], "parent"),
        (limits.ASSOCIATION["MaxWall"], "1-12"),
        (limits.ASSOCIATION["MaxWall"], None),
    ],
)
def test_a_value_that_slurm_keeps_is_right(key: limits.Key, value: Any) -> None:
    assert not limits.wrong(key, value)


def test_null_is_the_value_that_slurm_shows_without_one() -> None:
    keys = {"Priority": None, "UsageFactor": None, "GraceTime": None, "PreemptMode": None}
    shown = {"Priority": "0", "UsageFactor": "1.000000", "GraceTime": "00:00:00", "PreemptMode": "cluster"}

    assert limits.differing(limits.QOS, keys, shown) == []
    assert limits.setting("Priority", limits.QOS["Priority"], None, "5") == "Priority=0"


def test_slurm_asks_for_accounts_only_where_there_are_limits() -> None:
    assert slurm_config(Declared(people=(ANN,))) == {}
    assert "limits" in slurm_config(Declared(users={"ann": {"MaxJobs": 1}}))["AccountingStorageEnforce"]
    assert slurm_config(Declared("lab", low="requeue"), "2-0").items() >= {
        ("PreemptType", "preempt/qos"),
        ("PriorityDecayHalfLife", "2-0"),
    }
