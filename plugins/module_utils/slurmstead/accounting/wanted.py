# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The accounts, users and QOS that an inventory wants. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.slurmstead.accounting.limits import Value

TEMPLATES = {"home": "home", "lab": "users", "course": "staff"}
"""The account of people without a group, by template."""

LOW = "low"
"""The QOS of jobs that give way, such as Celery's workers."""

COURSE = "course"
COURSE_LIMITS = {
    "Flags": "DenyOnLimit",
    "MaxJobsPerUser": 8,
    "MaxSubmitJobsPerUser": 100,
    "MaxTRESPerUser": "cpu=8",
    "MaxWall": "4:00:00",
}
"""The QOS of students, unless the inventory says otherwise."""

HALF_LIFE = {"home": "7-0", "lab": "7-0", "course": "1-0"}
"""PriorityDecayHalfLife: before a deadline, what a student used last week must not count."""

NOT_IN_A_NAME = re.compile(r"[^a-z0-9_.-]")


@dataclass(frozen=True)
class User:
    """A user: the account that jobs have by default, and limits there."""

    account: str
    keys: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """What must be in the database; other values there stay."""

    qos: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    accounts: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """limits by name"""
    parents: Mapping[str, str] = field(default_factory=dict)
    placed: Collection[str] = ()
    """accounts whose parent is declared; others stay where they are"""
    users: Mapping[str, User] = field(default_factory=dict)
    enrolled: Collection[str] = ()
    """students: their new jobs are refused in other accounts without limits; those that wait still run"""


@dataclass(frozen=True)
class Declared:
    """What an inventory says, see the role `shares`."""

    template: str = "home"
    low: str = "none"
    people: Sequence[Mapping[str, Any]] = ()
    accounts: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    users: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    qos: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    @property
    def is_enforced(self) -> bool:
        """Whether slurmctld must know the account of each job: without limits it need not."""
        return bool(self.template != "home" or self.low != "none" or self.accounts or self.users or self.qos)


def account_name(group: str) -> str:
    """Return the account of a group; Slurm writes names of accounts in lower case.

    >>> account_name("Bio-Lab")
    'bio-lab'
    """
    return NOT_IN_A_NAME.sub("_", group.lower())


def wanted(declared: Declared, logins: Iterable[str] = ()) -> Wanted:
    """Return what must be in the database.

    :param logins: further users who can log in; none of their jobs may be refused
    """
    default = TEMPLATES[declared.template]
    users = _users(declared, default, logins)
    names = {default, *declared.accounts, *(user.account for user in users.values())}
    parents = {name: str(declared.accounts.get(name, {}).get("Parent") or "root") for name in names}
    # A parent that is not described is an account too.
    for parent in set(parents.values()) - names - {"root"}:
        parents[parent] = "root"
    limited = _limited(declared, default, parents)
    qos = _qos(declared, bool(limited))
    accounts = {}
    for name in parents:
        own = {key: value for key, value in declared.accounts.get(name, {}).items() if key != "Parent"}
        students = name in limited
        # Else students could exceed their limits with it.
        low = [] if students and declared.low == "none" else [LOW]
        allowed = [COURSE if students else "normal", *low]
        # Without limits each QOS is accepted. An account below another may have those of an earlier template.
        usual = {"QOS": allowed, "DefaultQOS": allowed[0]} if declared.is_enforced else {}
        for above in reversed(_above(name, parents)):
            given = declared.accounts.get(above, {})
            usual |= {key: given[key] for key in ("QOS", "DefaultQOS") if key in given}
        accounts[name] = {**usual, **own}
    placed = {name for name, keys in declared.accounts.items() if "Parent" in keys}
    enrolled = {name for name, user in users.items() if declared.template == "course" and user.account != default}
    return Wanted(qos, accounts, parents, placed, users, enrolled)


def _qos(declared: Declared, limited: bool) -> dict[str, Mapping[str, Value]]:
    usual: dict[str, Value] = {}
    found: dict[str, dict[str, Value]] = {}
    # Not those of all jobs together (Grp…): jobs of staff are in it, too.
    each = {**COURSE_LIMITS, **declared.qos.get(COURSE, {})}
    each = {key: value for key, value in each.items() if key.startswith(("Flags", "Max", "Min"))}
    if declared.is_enforced:
        # Jobs may always ask for it; without a way to give way, it has no effect. A course may have left its limits,
        # and one without declared students may still have students.
        found[LOW] = each if declared.template == "course" and declared.low != "none" else dict.fromkeys(each)
    if declared.low != "none":
        usual = {"Priority": 1000}
        found[LOW]["Priority"] = 0
        if declared.low == "requeue":
            usual["Preempt"], found[LOW]["PreemptMode"] = LOW, "requeue"
        found["normal"] = usual
    if limited:
        found[COURSE] = {**COURSE_LIMITS, **usual}
    return {**found, **{name: {**found.get(name, {}), **keys} for name, keys in declared.qos.items()}}


def _users(declared: Declared, default: str, logins: Iterable[str]) -> dict[str, User]:
    found = {}
    own = {str(person["name"]): str(person.get("account") or "") for person in declared.people}
    for name in [*own, *(name for name in logins if name not in own)]:
        keys = dict(declared.users.get(name, {}))
        group = "" if declared.template == "home" else account_name(own.get(name, ""))
        account = str(keys.pop("Account", None) or group or default)
        found[name] = User(account, keys)
    return found


def _above(name: str, parents: Mapping[str, str]) -> list[str]:
    """Return the accounts above one, the next one first."""
    found: list[str] = []
    while (name := parents.get(name, "root")) != "root" and name not in found:
        found.append(name)
    return found


def _limited(declared: Declared, default: str, parents: Mapping[str, str]) -> Collection[str]:
    """Return the accounts of students: in a course those of groups, but not those below the account of staff."""
    if declared.template != "course":
        return ()
    return {name for name in parents if default not in (name, *_above(name, parents))}


def slurm_config(declared: Declared, half_life: str | None = None) -> dict[str, Any]:
    """Return the keys of slurm.conf without which the shares have no effect.

    >>> slurm_config(Declared())
    {}
    >>> slurm_config(Declared("course"))["PriorityDecayHalfLife"]
    '1-0'
    """
    if not declared.is_enforced:
        return {}
    keys: dict[str, Any] = {
        "AccountingStorageEnforce": "associations,limits,qos,safe",
        "PriorityCalcPeriod": 1,
        "PriorityDecayHalfLife": half_life or HALF_LIFE[declared.template],
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": 1000,
        "PriorityWeightFairshare": 100000,
    }
    if declared.low != "none":
        keys["PriorityWeightQOS"] = 1000000
    if declared.low == "requeue":
        keys |= {"PreemptMode": "REQUEUE", "PreemptType": "preempt/qos"}
    return keys
