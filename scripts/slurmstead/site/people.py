"""Changes people.yml of a site: all of a change or nothing, after the operator has seen the difference."""

import dataclasses
import importlib
import os
import pathlib
import tempfile
from typing import Any

import ansible.module_utils

from slurmstead.errors import InventoryError, UsageError
from slurmstead.paths import ROOT
from slurmstead.wording import count


def room(name: str) -> Any:
    """Import a module of the room `people`, which Ansible finds through ansible.cfg."""
    directory = str(ROOT / "plugins" / "module_utils")
    if directory not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(directory)
    return importlib.import_module(f"ansible.module_utils.slurmstead.people.{name}")


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
    path = (inventory if inventory.is_dir() else inventory.parent) / "files" / room("file").NAME
    try:
        people = room("file").read(path)
        return Book(path, path.read_bytes().decode("utf-8-sig") if path.exists() else "", people)
    except room("person").PeopleError as error:
        raise InventoryError(_all(path, error), "Correct the file, then run the command again.") from None


def imported(book: Book, table: pathlib.Path) -> Any:
    """Return the people after an import of a CSV file.

    :raises UsageError: the file has mistakes; the message lists all of them
    """
    try:
        listed = room("table").parse(table.read_bytes(), str(table))
        return room("change").merged(book.people, listed, str(table), str(book.path))
    except OSError as error:
        raise UsageError(f"{table} cannot be read: {error.strerror}", "Name a CSV file.") from None
    except room("person").PeopleError as error:
        raise UsageError(_all(table, error), "Nothing was imported. Correct the file, then run it again.") from None


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
    try:
        book.path.parent.mkdir(exist_ok=True)
        mode = book.path.stat().st_mode & 0o777 if book.path.exists() else 0o644
        handle, staging = tempfile.mkstemp(dir=book.path.parent, prefix=f".{book.path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fchmod(handle, mode)
                os.fsync(handle)
            now = book.path.read_bytes().decode("utf-8-sig") if book.path.exists() else ""
            if now != book.text:
                raise UsageError(f"{book.path} was changed meanwhile", "Nothing was written. Run the command again.")
            os.replace(staging, book.path)
        finally:
            pathlib.Path(staging).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{book.path} cannot be written: {error.strerror}", "Nothing was changed.") from None


def _all(what: object, error: Any) -> str:
    return f"{what} has {count(len(error.mistakes), 'mistake')}:\n{error}"
