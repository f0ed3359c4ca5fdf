"""No file contains words that make a native reader stumble."""

from __future__ import annotations

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

REFUSED = {
    "anew": "again",
    "whoever": "name the user, process or administrator",
    "somebody": "an administrator, another process, the user",
    "mend(s|ed)?": "fix",
    "ends? with [0-9]": "exits with",
    "belongs? into": "belongs in",
    "stands? in": "is in",
    "of then": "name the time",
    "is none": "is not one, there is none of them",
    "are none": "are not",
    "is no [a-z]+ of": "is not a … of",
    "it complained": "its error output",
}
"""Refused words and word groups (regular expressions), and what to write instead."""

QUOTED = re.compile(r"``[^`]+``|`[^`]+`")
"""Text between backticks quotes a program."""


def text_files() -> list[pathlib.Path]:
    """Return every text file of the repository, except licences and locks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    skipped = {"LICENSE", "requirements.txt", "requirements-dev.txt", pathlib.Path(__file__).name}
    return [
        path for path in paths if path.name not in skipped and path.suffix not in {".svg", ".gz"} and path.is_file()
    ]


@pytest.mark.parametrize("word", REFUSED)
def test_no_file_has_a_word_that_makes_a_native_reader_stumble(word: str) -> None:
    # Python's None is not the word.
    pattern = re.compile(rf"\b(?:{word}|{word[0].upper()}{word[1:]})\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(QUOTED.sub("", line))
    ]

    assert not found, f"write: {REFUSED[word]}\n" + "\n".join(found)
