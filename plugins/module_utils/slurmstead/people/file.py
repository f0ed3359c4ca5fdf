# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The file people.yml: read with the line of each mistake, and changed without touching what stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ansible.module_utils.slurmstead.people.person import (
    FIELDS,
    Mistake,
    People,
    PeopleError,
    Person,
    check_group,
    check_uid,
    did_you_mean,
    person,
    shared,
)

NAME = "people.yml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
HEADER = "# People with an account. `stead people` changes this file; numbers are never changed or given to others.\n"
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_@.+/ -]*")
"""Strings that need no quotes in YAML, unless they are one of its words."""


def read(path: Path, name: str = "") -> People:
    """Return the people of a file; none if it does not exist.

    :param name: of the file in messages
    :raises PeopleError: the file has mistakes, or is a link to none
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        if path.is_symlink():
            wrong = f"is a link to {path.readlink()}, which does not exist"
            advice = "Bring the file back: without it, all people would be locked"
            raise PeopleError([Mistake(name or str(path), wrong, advice)]) from None
        return People()
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"cannot be read ({error.strerror if isinstance(error, OSError) else 'it is not UTF-8'})"
        raise PeopleError([Mistake(name or str(path), wrong, "Restore it, for example with git")]) from None
    return parse(text, name or str(path))


def parse(text: str, name: str = NAME) -> People:
    """Return the people of a text.

    :raises PeopleError: the text has mistakes
    """
    try:
        root = yaml.compose(text, LOADER)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PeopleError(
            [Mistake(f"{name}:{line}", f"is not YAML ({error.problem})", "Correct the line, or restore the file")]
        ) from None
    except yaml.YAMLError:
        raise PeopleError(
            [Mistake(name, "contains a character that YAML does not allow", "Restore the file, for example with git")]
        ) from None
    mistakes: list[Mistake] = []
    parts = dict(_parts(root, name, mistakes))
    groups = _groups(parts.get("groups"), name, mistakes)
    placed = list(_people(parts.get("people"), name, mistakes))
    if _empty(parts.get("people")) and not mistakes:
        # Of an emptied or truncated file: with no people, all accounts would be locked.
        advice = "Restore it, for example with git; write `people: []` if nobody is to have an account"
        mistakes.append(Mistake(name, "lists no people", advice))
    mistakes += shared((f"{name}:{line}", one) for line, one in placed)
    mistakes += _numbers(placed, groups, name)
    if mistakes:
        raise PeopleError(sorted(mistakes, key=lambda mistake: mistake.line))
    return People(tuple(one for _, one in placed), groups, {one.name: line for line, one in placed})


def _parts(root: Any, name: str, mistakes: list[Mistake]) -> Iterator[tuple[str, Any]]:
    """Yield the two parts of the file, as YAML nodes."""
    if _empty(root):
        return
    if not isinstance(root, yaml.MappingNode):
        mistakes.append(Mistake(f"{name}:1", "is not a mapping", "Begin the list with the line `people:`"))
        return
    seen = set()
    for key, value in root.value:
        place = f"{name}:{key.start_mark.line + 1}"
        if key.value not in ("groups", "people"):
            advice = did_you_mean(str(key.value), ("groups", "people"), "Only groups and people can be in this file")
            mistakes.append(Mistake(place, f"{key.value} is not known", advice))
        elif key.value in seen:
            mistakes.append(Mistake(place, f"{key.value} is defined again", "Keep one of the two"))
        else:
            seen.add(key.value)
            yield key.value, value


def _empty(node: Any) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null"))


def _groups(node: Any, name: str, mistakes: list[Mistake]) -> dict[str, int]:
    groups: dict[str, int] = {}
    if _empty(node):
        return groups
    if not isinstance(node, yaml.MappingNode):
        place = f"{name}:{node.start_mark.line + 1}"
        mistakes.append(Mistake(place, "groups: is not a mapping", "Write lines such as `course: 10001`"))
        return groups
    for key, value in node.value:
        group, number = str(key.value), str(value.value)
        faults = [*check_group(group), *check_uid(number)]
        if group in groups:
            faults.append((f"group: {group} is defined again", "Keep one of the two"))
        place = f"{name}:{key.start_mark.line + 1}"
        mistakes += [Mistake(place, wrong.replace("uid:", "gid:"), advice) for wrong, advice in faults]
        if not faults:
            groups[group] = int(number)
    return groups


def _people(node: Any, name: str, mistakes: list[Mistake]) -> Iterator[tuple[int, Person]]:
    """Yield line and person of each entry without a mistake."""
    if _empty(node):
        return
    if not isinstance(node, yaml.SequenceNode):
        place = f"{name}:{node.start_mark.line + 1}"
        mistakes.append(Mistake(place, "people: is not a list", "Begin each person with `- name:`"))
        return
    for entry in node.value:
        line = entry.start_mark.line + 1
        before = len(mistakes)
        fields = _fields(entry, name, mistakes)
        one, faults = person(fields)
        mistakes += [Mistake(f"{name}:{line}", wrong, advice) for wrong, advice in faults]
        if one and not one.uid:
            advice = "Give each person a number, or let `stead people add` write the entry"
            mistakes.append(Mistake(f"{name}:{line}", f"{one.name} has no uid", advice))
        if one and len(mistakes) == before:
            yield line, one


def _fields(entry: Any, name: str, mistakes: list[Mistake]) -> dict[str, str | tuple[str, ...]]:
    """Return the texts of an entry's fields: YAML's own dates, numbers and booleans are not wanted."""
    fields: dict[str, str | tuple[str, ...]] = {}
    if not isinstance(entry, yaml.MappingNode):
        place = f"{name}:{entry.start_mark.line + 1}"
        mistakes.append(Mistake(place, "is not a person", "Begin each person with `- name:`"))
        return {"name": "nobody-yet"}
    for key, value in entry.value:
        place, field = f"{name}:{key.start_mark.line + 1}", str(key.value)
        is_list = isinstance(value, yaml.SequenceNode) and all(isinstance(one, yaml.ScalarNode) for one in value.value)
        if field not in FIELDS:
            mistakes.append(Mistake(place, f"{field} is not known", did_you_mean(field, FIELDS, "Remove it")))
        elif field in fields:
            mistakes.append(Mistake(place, f"{field} is defined again", "Keep one of the two"))
        elif field == "keys" and is_list:
            fields[field] = tuple(one.value.strip() for one in value.value)
        elif _empty(value):
            fields[field] = ""
        elif not isinstance(value, yaml.ScalarNode):
            mistakes.append(Mistake(place, f"{field}: is not a text", "Write one value"))
        else:
            fields[field] = (value.value.strip(),) if field == "keys" else value.value.strip()
    return fields


def _numbers(placed: Iterable[tuple[int, Person]], groups: Mapping[str, int], name: str) -> Iterator[Mistake]:
    """A person has a group of its own, with the person's name and number."""
    numbers = {gid: group for group, gid in groups.items()}
    for line, one in placed:
        if one.name in groups:
            yield Mistake(f"{name}:{line}", f"{one.name} is also the name of a group", "Rename one of them")
        if one.uid in numbers:
            wrong = f"uid: {one.uid} is the number of the group {numbers[one.uid]}"
            yield Mistake(f"{name}:{line}", wrong, "Give one of them another number")
    if len(numbers) < len(groups):
        yield Mistake(name, "groups: two groups have one number", "Give each group its own number")


def scalar(text: str) -> str:
    """Return a YAML scalar for a string.

    >>> [scalar("ann"), scalar("no"), scalar("Ann: Lee")]
    ['ann', '"no"', '"Ann: Lee"']
    """
    if PLAIN.fullmatch(text) and text == text.strip() and yaml.safe_load(text) == text:
        return text
    return json.dumps(text, ensure_ascii=False)


def entry(one: Person) -> str:
    """Return the lines of a person in the file."""
    lines = [f"- name: {scalar(one.name)}", f"  uid: {one.uid}"]
    for name in ("full_name", "email", "group"):
        if getattr(one, name):
            lines.append(f"  {name}: {scalar(getattr(one, name))}")
    if one.keys:
        lines += ["  keys:", *(f"    - {scalar(key)}" for key in one.keys)]
    if one.expires:
        lines.append(f"  expires: {one.expires}")
    if one.state != "active":
        lines.append(f"  state: {one.state}")
    return "\n".join(lines) + "\n"


def render(people: People) -> str:
    """Return the text of a new file."""
    groups = "".join(f"  {scalar(name)}: {gid}\n" for name, gid in people.groups.items())
    entries = "".join(entry(one) for one in people.people)
    head = f"groups:\n{groups}" if groups else "groups: {}\n"
    return f"---\n{HEADER}{head}people:{chr(10) if entries else ' []' + chr(10)}{entries}"


def edit(text: str, new: People) -> str:
    """Return a file's text with new content: entries that stay as they are keep their lines, order and comments.

    :raises ValueError: the file is in a form that only its author can change
    """
    if not text.strip():
        return render(new)
    old = parse(text)
    for attempt in (_edited(text, old, new), "" if "#" in text.replace(HEADER, "") else render(new)):
        try:
            if attempt and parse(attempt) == new:
                return attempt
        except PeopleError:
            continue
    raise ValueError("it is written in a form that this command cannot change without losing comments")


def _edited(text: str, old: People, new: People) -> str:
    """Return the text with the lines of changed entries replaced, and of new entries and groups added."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    root = yaml.compose("".join(lines), LOADER)
    nodes = {key.value: value for key, value in root.value} if isinstance(root, yaml.MappingNode) else {}
    before = {one.name: one for one in old.people}
    changes: list[tuple[int, int, str]] = []
    people, groups = nodes.get("people"), nodes.get("groups")
    fresh = "".join(entry(one) for one in new.people if one.name not in before)
    if isinstance(people, yaml.SequenceNode) and people.value and not people.flow_style:
        margin = " " * people.start_mark.column
        for node, one in zip(people.value, old.people, strict=True):
            now = next((other for other in new.people if other.name == one.name), one)
            if now != one:
                end = _end(lines, node)
                changes.append((node.start_mark.line, end, _indented(entry(now), margin)))
        end = _end(lines, people)
        changes.append((end, end, _indented(fresh, margin)))
    elif fresh:
        return ""
    added = {name: gid for name, gid in new.groups.items() if name not in old.groups}
    if added:
        if not isinstance(groups, yaml.MappingNode) or groups.flow_style or not groups.value:
            return ""
        margin, end = " " * groups.start_mark.column, _end(lines, groups)
        changes.append((end, end, "".join(f"{margin}{scalar(name)}: {gid}\n" for name, gid in added.items())))
    for first, last, replacement in sorted(changes, reverse=True):
        lines[first:last] = [replacement]
    return "".join(lines)


def _end(lines: list[str], node: Any) -> int:
    """Return the line after a node, without the comments and blank lines that follow it."""
    last = node
    while isinstance(last, (yaml.SequenceNode, yaml.MappingNode)) and last.value and not last.flow_style:
        last = last.value[-1] if isinstance(last, yaml.SequenceNode) else last.value[-1][1]
    end = int(last.end_mark.line) + int(last.end_mark.column > 0)
    first = int(node.start_mark.line) + 1
    while end > first and lines[end - 1].lstrip().startswith(("#", "\n")):
        end -= 1
    return max(end, first)


def _indented(text: str, margin: str) -> str:
    return "".join(f"{margin}{line}" for line in text.splitlines(keepends=True))
