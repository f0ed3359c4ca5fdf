"""docs/first-hundred-jobs.md leads from a folder to results, in few commands that exist."""

import re
import shlex

import typer.main

from slurmstead import cli
from slurmstead.paths import ROOT

PAGE = (ROOT / "docs" / "first-hundred-jobs.md").read_text()
WAY = re.findall(r"^\$ (.*)", PAGE.split("\n## ")[0], re.MULTILINE)
WORDS = {8: "eight", 9: "nine", 10: "ten"}


def test_the_way_to_results_takes_ten_commands_at_most_and_as_many_as_it_says() -> None:
    assert len(WAY) <= 10
    assert f"in {WORDS[len(WAY)]} commands" in PAGE


def test_each_command_of_the_page_is_understood() -> None:
    verbs = typer.main.get_command(cli.app)
    given = [shlex.split(line)[1:] for line in re.findall(r"^\$ (stead .*)", PAGE, re.MULTILINE)]
    assert {"submit", "jobs", "logs", "fetch"} <= {words[0] for words in given}

    for verb, *arguments in given:
        verbs.commands[verb].make_context(verb, arguments)  # type: ignore[attr-defined]
