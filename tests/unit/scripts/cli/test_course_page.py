"""docs/course.md leads from a list of students to a plot, in few commands that exist."""

import re
import shlex

import pytest
import typer.main

from slurmstead.cli import main as cli
from slurmstead.paths import ROOT
from tests.lab.course import page

COMMANDS = page.commands()
WORDS = {7: "Seven", 8: "Eight", 9: "Nine", 10: "Ten"}


def test_the_way_to_a_plot_takes_as_many_commands_as_the_page_says() -> None:
    assert len(COMMANDS) <= 12
    assert page.TEXT.split("\n\n")[1].startswith(f"{WORDS[len(COMMANDS)]} commands")


@pytest.mark.parametrize("command", [one for one in COMMANDS if "scripts/stead" in one])
def test_each_command_is_understood(command: str) -> None:
    verbs, words = typer.main.get_command(cli.app), shlex.split(command)[1:]
    while words and words[0] in getattr(verbs, "commands", {}):
        verbs, words = verbs.commands[words[0]], words[1:]
    # The inventory is read when the verb runs.
    given = [*words, *(["--inventory=/"] if " init " not in command else [])]

    assert verbs.make_context(verbs.name, given).params


def test_the_cell_is_python_and_the_pictures_are_there() -> None:
    pictures = re.findall(r"\]\((figures/\S+)\)", page.TEXT)

    assert compile(page.block("python"), "cell", "exec")
    assert pictures and [path for path in pictures if not (ROOT / "docs" / path).is_file()] == []
