# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Lists of people that are missing: without them, machines would lock everyone who was in them."""

from __future__ import annotations

from collections.abc import Mapping

from ansible.module_utils.slurmstead.identity.departures import Record
from ansible.module_utils.slurmstead.people.person import FIRST


def lost_lists(
    gone: Mapping[str, int], record: Record, known: Mapping[str, int], has_people: bool, has_users: bool
) -> list[str]:
    """Return why a missing people.yml, or accounts_users that is not defined, would lock accounts.

    :param gone: numeric ID by name of the accounts that would be locked
    :param known: numeric ID by name of the accounts of this node
    """
    leaving = {name: record[name] for name, uid in gone.items() if known.get(name) == uid and not record[name].left}
    people = {
        name
        for name, made in leaving.items()
        if (made.uid >= FIRST or has_people if made.in_people is None else made.in_people)
    }
    lost = []
    if people and not has_people:
        lost += [("files/people.yml is missing", people, "restore the file, or write `people: []` into it")]
    if (users := leaving.keys() - people) and not has_users:
        lost += [("accounts_users is not defined", users, "restore it, or write `accounts_users: []`")]
    return [
        f"{wrong}, so {_some(sorted(names))} would be locked and lose their jobs; {advice} if all of them leave"
        for wrong, names, advice in lost
    ]


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
