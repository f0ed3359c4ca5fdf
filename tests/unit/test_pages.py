"""What a page names exists: files, headings, verbs and options."""

from __future__ import annotations

import functools
import pathlib
import re
from collections.abc import Iterator

import pytest
import typer.main

from slurmstead.cli import main as cli
from tests.unit.test_rules import PLAYBOOKS, PYTHON, ROOT, files, load, tasks_of, text

STEAD = typer.main.get_command(cli.app)
PAGES = [path for path in files() if path.suffix == ".md"]
BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMANDS = re.compile(r"(?:^[ $]+|`)(?:[\w~./]*/)?stead ([^`\n|;#]+)", re.MULTILINE)
"""A command that a line of code begins with, or a word in code."""


def prose(path: pathlib.Path) -> str:
    return BLOCK.sub("", text(path))


@functools.cache
def headings(path: pathlib.Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    lines = re.findall(r"^#+ (.*)", prose(path), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line) for line in lines]
    return {re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in plain}


def dead(path: pathlib.Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for link in LINK.findall(prose(path)):
        place, _, heading = link.partition("#")
        target = (ROOT / path.parent / place).resolve() if place else ROOT / path
        page = target / "README.md" if heading and target.is_dir() else target
        if "://" not in link and (not page.exists() or heading and heading not in headings(page.relative_to(ROOT))):
            yield link


def unknown(words: list[str]) -> str:
    """What of a command stead does not know; empty if it knows all of it."""
    verb = STEAD
    while words and (verbs := getattr(verb, "commands", {})):
        if words[0] not in verbs:
            return words[0]
        verb, words = verbs[words[0]], words[1:]
    known = {name for option in verb.params for name in (*option.opts, *option.secondary_opts)}
    given = [word.strip("[]").partition("=")[0] for word in words[: words.index("--") if "--" in words else None]]
    return next((word for word in given if re.match(r"-{1,2}[a-z]", word) and word not in known), "")


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_no_link_of_a_page_is_dead(path: pathlib.Path) -> None:
    assert list(dead(path)) == []


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_a_page_has_no_command_that_stead_does_not_know(path: pathlib.Path) -> None:
    commands = [line.strip() for line in COMMANDS.findall(text(path))]

    assert [(line, unknown(line.split())) for line in commands if unknown(line.split())] == []


@pytest.mark.parametrize("path", [path for path in PAGES if "bootstrap-hosts.yml -" in text(path)], ids=str)
def test_each_command_that_prepares_a_machine_names_the_user_of_its_installation(path: pathlib.Path) -> None:
    commands = re.findall(r"bootstrap-hosts\.yml (-.*)", text(path))

    assert [line for line in commands if "bootstrap_login_user=" not in line] == []


def test_each_tag_that_a_page_or_a_message_names_exists() -> None:
    plays = (play for path in PLAYBOOKS for play in load(path) if isinstance(play, dict))
    known = {tag for play in plays for part in (play, *tasks_of([play])) for tag in part.get("tags", ())}
    named = {tag for path in [*PAGES, *PYTHON] for tag in re.findall(r"--tags (?!out\b)([a-z_]+)", text(path))}

    assert known and sorted(named - known) == []


def test_the_index_has_each_page_once() -> None:
    listed = re.findall(r"^\| \[[^]]+\]\((\w[\w-]*\.md)\)", text(pathlib.Path("docs/index.md")), re.MULTILINE)
    pages = [path.name for path in PAGES if path.parts[0] == "docs" and path.name != "index.md"]

    assert sorted(listed) == sorted(pages)


def test_the_tour_shows_each_verb() -> None:
    table = "\n".join(re.findall(r"^\| `.*", text(pathlib.Path("docs/tour.md")), re.MULTILINE))
    verbs = STEAD.commands  # type: ignore[attr-defined]

    assert [verb for verb in verbs if not re.search(rf"`{verb}\b", table)] == []
