# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Mistakes in a configuration, and the source line of each: pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ansible.module_utils.slurmstead.conf import lines as conf_lines

LONGEST = 100
"""Maximum number of characters shown of a source line."""


@dataclass(frozen=True)
class Finding:
    """One mistake: where, what, and what to do. Without a line it concerns the whole file, or the machine."""

    what: str
    file: str = ""
    line: int = 0
    source: str = ""
    advice: str = ""

    def __str__(self) -> str:
        where = f"{self.file} line {self.line}" if self.line else self.file
        source = f"{self.source[:LONGEST]}…" if len(self.source) > LONGEST else self.source
        shown = f"{where}: `{source}`: " if source else f"{where}: " if where else ""
        return f"{shown}{self.what}{f'; {self.advice}' if self.advice else ''}"


def at(files: Mapping[str, str], file: str, line: int, what: str, advice: str = "") -> Finding:
    """Return a finding with the text of its line."""
    lines = files.get(file, "").splitlines()
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    if not source:
        return Finding(what, file, advice=advice)
    return Finding(what, file, line, source, advice)


def key_line(files: Mapping[str, str], key: str) -> tuple[str, int]:
    """Return the file and number of the last line that has a key, or no line."""
    place = ("", 0)
    for file, text in files.items():
        for line in conf_lines.parse(text):
            if key.lower() in (pair.name for pair in line.pairs):
                place = (file, line.number)
    return place


WORD = re.compile(r"[A-Za-z0-9_./\[\]-]+")


def locate(files: Mapping[str, str], message: str) -> tuple[str, int]:
    """Return the file and number of the line that a message concerns, or no line.

    This is the line that shares most words with the message. A value counts more than a key, and a later line more than
    an earlier one: of two contradicting lines, the later one is probably the mistake.

    >>> locate({"slurm.conf": "PartitionName=a Nodes=n1\\nPartitionName=b Nodes=n9"}, "Invalid nodes in partition b")
    ('slurm.conf', 2)
    """
    words = {word.strip(".,:;").lower() for word in WORD.findall(message)}
    best, place = 0, ("", 0)
    for file, text in files.items():
        for line in conf_lines.parse(text):
            score = 0
            for pair in line.pairs:
                values = {pair.value.lower(), *(word.lower() for word in pair.value.split(","))}
                score += 3 * bool(values & words) + (pair.name in words)
            if score and score >= best:
                best, place = score, (file, line.number)
    return place
