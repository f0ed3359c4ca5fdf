"""docs/first-hundred-jobs.md leads from a folder to results, in few commands that exist."""

import re
import shlex

import pytest
import typer.main

from slurmstead.cli import main as cli
from slurmstead.paths import ROOT

PAGE = (ROOT / "docs" / "first-hundred-jobs.md").read_text()
WAY = re.findall(r"^\$ (.*)", PAGE.split("\n## ")[0], re.MULTILINE)
WORDS = {8: "eight", 9: "nine", 10: "ten"}


def test_the_way_to_results_takes_ten_commands_at_most_and_as_many_as_it_says() -> None:
    assert len(WAY) <= 10
    assert f"in {WORDS[len(WAY)]} commands" in PAGE


@pytest.mark.parametrize("page", ["first-hundred-jobs", "engines"])
def test_each_command_of_a_page_is_understood(page: str) -> None:
    verbs = typer.main.get_command(cli.app)
    text = (ROOT / "docs" / f"{page}.md").read_text()
    given = [shlex.split(line)[1:] for line in re.findall(r"^\$ (stead .*)", text, re.MULTILINE)]
    assert {"submit", "logs"} <= {words[0] for words in given}

    for verb, *arguments in given:
        verbs.commands[verb].make_context(verb, arguments)  # type: ignore[attr-defined]


def test_what_the_page_takes_from_a_folder_is_in_that_example() -> None:
    named = re.findall(r"--requirement (\S+)|python3 (\S+)", "\n".join(re.findall(r"^\$ (.*)", PAGE, re.MULTILINE)))
    paths = ["".join(pair) for pair in named]

    assert len(paths) == 2
    assert [path for path in paths if not (ROOT / "examples" / path).is_file()] == []
