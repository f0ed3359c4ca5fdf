# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""How the people of a file change: who comes, whose fields change, and which numbers newcomers get."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from ansible.module_utils.slurmstead.people.file import NAME
from ansible.module_utils.slurmstead.people.person import FIRST, LAST, Mistake, People, PeopleError, Person, shared


def merged(old: People, listed: People, source: str, file: str = NAME) -> People:
    """Return the people with those of a list: what a row leaves blank stays, and nobody leaves.

    :param source: of the list, in messages
    :param file: of the old people, in messages
    :raises PeopleError: a row has another number than the person, or what belongs to another person
    """
    by_name = {one.name: one for one in old.people}
    groups = dict(old.groups)
    taken = {one.uid for one in old.people} | {*groups.values()}
    # A group without a number here is in accounts_groups of the inventory.
    elsewhere = {one.group for one in old.people} - {*groups}
    mistakes = []
    for row in listed.people:
        place = listed.place(source, row.name)
        there = by_name.get(row.name)
        if there and row.uid not in (0, there.uid):
            wrong = f"{row.name} has the number {there.uid}, which never changes, but {row.uid} here"
            mistakes.append(Mistake(place, wrong, f"Write {there.uid}, or leave the number out"))
        elif not there and row.uid in taken:
            wrong = f"{row.name} has the number {row.uid}, which is given already"
            mistakes.append(Mistake(place, wrong, "Leave the number out"))
    if mistakes:
        raise PeopleError(mistakes)
    taken |= {row.uid for row in listed.people}
    numbers = _numbers(taken)
    for row in listed.people:
        if row.group and row.group not in groups and row.group not in elsewhere:
            groups[row.group] = next(numbers)
        there = by_name.get(row.name)
        if there is None:
            by_name[row.name] = dataclasses.replace(row, uid=row.uid or next(numbers), state=row.state or "active")
            continue
        given = {
            field.name: getattr(row, field.name)
            for field in dataclasses.fields(row)
            if field.name != "uid" and getattr(row, field.name)
        }
        by_name[row.name] = dataclasses.replace(there, **given)
    new = People(tuple(by_name.values()), groups)
    places = {one.name: old.place(file, one.name) for one in old.people}
    places |= {one.name: listed.place(source, one.name) for one in listed.people}
    clashes = [
        Mistake(places[one.name], f"{one.name} is also the name of a group", "Rename one of them")
        for one in new.people
        if one.name in groups
    ]
    wrong_keys = list(shared((places[one.name], one) for one in new.people))
    if clashes or wrong_keys:
        raise PeopleError(clashes + wrong_keys)
    return new


def _numbers(taken: set[int]) -> Iterator[int]:
    """Yield numbers above all that were ever given."""
    yield from range(max([FIRST - 1, *taken]) + 1, LAST + 1)
    raise PeopleError([Mistake("uid", f"all numbers to {LAST} are given", "Write free ones into the list")])


def changed(old: People, names: Iterable[str], source: str, **fields: Any) -> People:
    """Return the people with other fields of those named.

    :raises PeopleError: a name is not that of a person
    """
    wanted = list(names)
    known = {one.name for one in old.people}
    unknown = [Mistake(source, f"there is no {name}", "See: stead people list") for name in wanted if name not in known]
    if unknown:
        raise PeopleError(unknown)
    people = tuple(dataclasses.replace(one, **fields) if one.name in wanted else one for one in old.people)
    return People(people, old.groups)


def difference(old: People, new: People) -> list[str]:
    """Return a line for each group and person that differs: `+` for new ones, `~` for changed ones. Keys are counted.

    >>> difference(People(), People((Person("ann", 10001, full_name="Ann Lee"),)))
    ['+ ann 10001  Ann Lee  no key']
    """
    lines = [f"+ group {name} {gid}" for name, gid in new.groups.items() if name not in old.groups]
    before = {one.name: one for one in old.people}
    for one in new.people:
        there = before.get(one.name)
        if there is None:
            more = [one.full_name, one.email, one.group and f"group {one.group}"]
            more += [f"expires {one.expires}" if one.expires else "", "" if one.keys else "no key"]
            lines.append("  ".join(filter(None, [f"+ {one.name} {one.uid}", *more])))
        elif there != one:
            lines.append(f"~ {one.name} {one.uid}  {', '.join(_changes(there, one))}")
    return lines


def _changes(old: Person, new: Person) -> Iterator[str]:
    for field in dataclasses.fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before == after:
            continue
        if field.name == "keys":
            yield f"keys: {len(set(after) - set(before))} new, {len(set(before) - set(after))} removed"
        else:
            yield f"{field.name}: {before or 'none'} → {after or 'none'}"
