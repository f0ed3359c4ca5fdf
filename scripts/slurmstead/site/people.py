"""Changes people.yml of a site: all of a change or nothing, after the operator has seen the difference."""

import dataclasses
import pathlib
from typing import Any

from slurmstead import rooms
from slurmstead.errors import InventoryError, UsageError
from slurmstead.site import file
from slurmstead.wording import count


def room(name: str) -> Any:
    """Import a module of the room `people`."""
    return rooms.module(f"people.{name}")


@dataclasses.dataclass(frozen=True)
class Book:
    """The people of a site: the path of the file, its content as text, and as people."""

    path: pathlib.Path
    text: str
    people: Any


def read(inventory: pathlib.Path) -> Book:
    """Return the people of an inventory; none if it has no people.yml.

    :raises InventoryError: the file has mistakes; the message lists all of them
    """
    path = file.beside(inventory, room("file").NAME)
    try:
        people = room("file").read(path)
        return Book(path, file.read(path), people)
    except room("person").PeopleError as error:
        raise InventoryError(_all(path, error), "Correct the file, then run the command again.") from None


def imported(book: Book, table: pathlib.Path) -> tuple[Any, set[str]]:
    """Return the people after an import of a CSV file, and the names in that file.

    :raises UsageError: the file has mistakes; the message lists all of them
    """
    try:
        listed = room("table").parse(table.read_bytes(), str(table))
        new = room("change").merged(book.people, listed, str(table), str(book.path))
        return new, {one.name for one in listed.people}
    except OSError as error:
        raise UsageError(f"{table} cannot be read: {error.strerror}", "Name a CSV file.") from None
    except room("person").PeopleError as error:
        raise UsageError(_all(table, error), "Nothing was imported. Correct the file, then run it again.") from None


def members(book: Book, group: str, today: str) -> list[str]:
    """Return the names of a group's people who are active on a day.

    :raises UsageError: the group has no active people
    """
    found = [one.name for one in book.people.people if one.group == group and one.is_active(today)]
    if not found:
        groups = sorted({one.group for one in book.people.people if one.group})
        raise UsageError(
            f"{group} has no active people in {book.path}", f"Its groups: {', '.join(groups) or 'no group'}."
        )
    return found


def added(book: Book, fields: dict[str, Any]) -> Any:
    """Return the people with one more, or with other fields of one of them, who is active again.

    :raises UsageError: a field is wrong
    """
    one, faults = room("person").person(fields)
    try:
        if faults:
            raise room("person").PeopleError(room("person").Mistake("person", *fault) for fault in faults)
        return room("change").merged(book.people, room("person").People((one,)), "person", str(book.path))
    except room("person").PeopleError as error:
        raise UsageError(_all("the person", error), "Nothing was changed.") from None


def changed(book: Book, names: list[str], **fields: str) -> Any:
    """Return the people with other fields of those named.

    :raises UsageError: a name or a field is wrong
    """
    try:
        faults = [fault for name, value in fields.items() for fault in room("person").CHECKS[name](value)]
        if faults:
            raise room("person").PeopleError(room("person").Mistake("option", *fault) for fault in faults)
        return room("change").changed(book.people, names, str(book.path), **fields)
    except room("person").PeopleError as error:
        raise UsageError(_all("the command", error), "Nothing was changed.") from None


def difference(book: Book, new: Any) -> list[str]:
    """Return a line for each group and person that differs."""
    lines: list[str] = room("change").difference(book.people, new)
    return lines


def write(book: Book, new: Any) -> None:
    """Replace the file.

    :raises UsageError: it cannot be written, or another program has changed it meanwhile
    """
    try:
        text = room("file").edit(book.text, new)
    except ValueError as error:
        raise UsageError(f"{book.path} cannot be changed: {error}", "Edit it yourself, one entry per person.") from None
    file.replace(book.path, book.text, text)


def _all(what: object, error: Any) -> str:
    return f"{what} has {count(len(error.mistakes), 'mistake')}:\n{error}"
