# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A list of people from a spreadsheet: CSV with commas, semicolons or tabs, whatever its line ends."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.people.person import (
    FIELDS,
    Mistake,
    People,
    PeopleError,
    did_you_mean,
    person,
    shared,
    shown,
)

COLUMNS = {
    **{field: field for field in FIELDS},
    **dict.fromkeys(("login", "user", "username"), "name"),
    **dict.fromkeys(("fullname", "real_name"), "full_name"),
    **dict.fromkeys(("e_mail", "mail"), "email"),
    **dict.fromkeys(("key", "public_key", "ssh_key"), "keys"),
    **dict.fromkeys(("expiry", "expiry_date"), "expires"),
}
"""Field by name of the column, in lower case and with underscores."""

Fields = Mapping[str, "str | tuple[str, ...]"]


def parse(content: bytes, name: str) -> People:
    """Return the people of a list; a person has no number unless the list has one.

    :raises PeopleError: the list has mistakes
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        advice = "Save it again as CSV with the encoding UTF-8"
        raise PeopleError([Mistake(f"{name}:{line}", "is not UTF-8", advice)]) from None
    private = [number for number, line in enumerate(text.splitlines(), start=1) if "PRIVATE KEY" in line]
    if private:
        advice = "Ask for the public key, which is in the file that ends in .pub, and have the private key replaced"
        raise PeopleError([Mistake(f"{name}:{private[0]}", "is a private key", advice)])
    mistakes: list[Mistake] = []
    placed = []
    for line, fields in _rows(text, name, mistakes):
        one, faults = person(fields, state="")
        mistakes += [Mistake(f"{name}:{line}", wrong, advice) for wrong, advice in faults]
        if one:
            placed.append((line, one))
    mistakes += shared((f"{name}:{line}", one) for line, one in placed)
    if not placed and not mistakes:
        mistakes.append(Mistake(name, "has no people", "Write one row for each person below the names of the columns"))
    if mistakes:
        raise PeopleError(sorted(mistakes, key=lambda mistake: mistake.line))
    return People(tuple(one for _, one in placed), lines={one.name: line for line, one in placed})


def _rows(text: str, name: str, mistakes: list[Mistake]) -> Iterator[tuple[int, Fields]]:
    """Yield the first line and the fields of each row that fits the columns."""
    # What Excel writes so that it reads its own file.
    text = re.sub(r"\Asep=.\r?\n", "\n", text)
    header = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, skipinitialspace=True, strict=True)
    columns: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            first, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            width = max(number for number, cell in enumerate(cells, start=1) if cell.strip())
            # A spreadsheet keeps columns that were emptied.
            del cells[max(width, len(columns or ())) :]
            if columns is None:
                columns = _columns(cells, f"{name}:{first}", mistakes)
                if not columns:
                    return
            elif len(cells) != len(columns):
                wrong = f"has {len(cells)} cells, but there are {len(columns)} columns"
                advice = f"Quote a text that contains {shown(delimiter)}, and keep empty cells"
                mistakes.append(Mistake(f"{name}:{first}", wrong, advice))
            else:
                yield first, {column: _cell(column, cell) for column, cell in zip(columns, cells, strict=True)}
    except csv.Error as error:
        mistakes.append(Mistake(f"{name}:{line}", f"is not CSV ({error})", "Close the quotation marks of the row"))


def _columns(cells: list[str], place: str, mistakes: list[Mistake]) -> list[str]:
    """Return the fields of the columns; none if they are wrong."""
    before = len(mistakes)
    fields: list[str] = []
    for cell in cells:
        column = "_".join(cell.strip().lower().replace("-", " ").replace("_", " ").split())
        field = COLUMNS.get(column)
        if field is None:
            advice = did_you_mean(column, COLUMNS, f"Remove it, or rename it to one of {', '.join(FIELDS)}")
            mistakes.append(Mistake(place, f"the column {shown(cell)} is not known", advice))
        elif field in fields:
            mistakes.append(Mistake(place, f"has two columns for {field}", "Remove one of them"))
        else:
            fields.append(field)
    if "name" not in fields and len(mistakes) == before:
        advice = "Name the columns in the first line; the column `name` has the login names"
        mistakes.append(Mistake(place, "has no column `name`", advice))
    return fields if len(mistakes) == before else []


def _cell(column: str, cell: str) -> str | tuple[str, ...]:
    if column == "keys":
        return tuple(line.strip() for line in cell.splitlines() if line.strip())
    return cell.strip()
