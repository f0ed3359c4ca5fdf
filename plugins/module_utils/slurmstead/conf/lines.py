# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The lines of slurm.conf, cgroup.conf and gres.conf, read as Slurm reads them (src/common/parse_config.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|$)')
"""`Key=Value` as in keyvalue_pattern; a value in quotes may hold spaces."""

INCLUDE = re.compile(r"include\s+(\S.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Pair:
    """One `Key=Value`, with the number of the line on which its logical line begins."""

    key: str
    value: str
    line: int

    @property
    def name(self) -> str:
        """The key in lower case for comparison; Slurm ignores its case."""
        return self.key.lower()


@dataclass(frozen=True)
class Line:
    """A logical line: continuation lines are joined, comments are removed."""

    number: int
    text: str
    pairs: tuple[Pair, ...]
    rest: str = ""
    """The rest of the line that is not `Key=Value`; Slurm stops there."""

    @property
    def include(self) -> str:
        """The file that this line includes."""
        match = INCLUDE.fullmatch(self.text)
        return match[1] if match else ""


def without_comment(text: str) -> str:
    r"""Return a line up to its comment; `\#` does not begin a comment (_strip_comments).

    >>> without_comment("SlurmUser=slurm # who"), without_comment(r"MailProg=/a\#b")
    ('SlurmUser=slurm ', 'MailProg=/a#b')
    """
    return re.sub(r"(?<!\\)#.*", "", text).replace("\\#", "#")


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the number and text of each non-empty line; a backslash at the end continues it.

    >>> list(logical_lines("# a\nNodeName=n1 \\\n  CPUs=2\n"))
    [(2, 'NodeName=n1   CPUs=2')]
    """
    first, joined = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        first = first or number
        stripped = without_comment(line).rstrip()
        if stripped.endswith("\\"):
            joined += stripped[:-1]
            continue
        whole, start = (joined + stripped).strip(), first
        first, joined = 0, ""
        if whole:
            yield start, whole
    if joined.strip():
        yield first, joined.strip()


def parse(text: str) -> tuple[Line, ...]:
    """Return the logical lines of a file.

    >>> parse('Epilog="/a b" x')[0].rest
    'x'
    """
    lines = []
    for number, whole in logical_lines(text):
        if INCLUDE.fullmatch(whole):
            lines.append(Line(number, whole, ()))
            continue
        pairs, position = [], 0
        while match := PAIR.match(whole, position):
            pairs.append(Pair(match[1], match[2] if match[2] is not None else match[3], number))
            position = match.end()
        lines.append(Line(number, whole, tuple(pairs), whole[position:].strip()))
    return tuple(lines)
