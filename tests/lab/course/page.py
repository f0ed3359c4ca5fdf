"""The commands and the cell of docs/course.md."""

from __future__ import annotations

import re
import textwrap

from slurmstead.paths import ROOT

FENCED = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
TEXT = (ROOT / "docs/course.md").read_text()


def commands() -> list[str]:
    """Return the commands of the list, in order."""
    return re.findall(r"^ {7}(\S.*)$", FENCED.sub("", TEXT), re.MULTILINE)


def block(language: str) -> str:
    """Return the only block of a language."""
    (found,) = [text for name, text in FENCED.findall(TEXT) if name == language]
    return textwrap.dedent(found)
