"""The folders under examples/ can be submitted as they are, and bring the same packages tomorrow."""

from __future__ import annotations

import pathlib
import re
import subprocess

import pytest

from slurmstead.client import settings
from slurmstead.paths import ROOT

FOLDERS = sorted(path.parent for path in (ROOT / "examples").glob("*/stead.toml"))
SCRIPTS = sorted((ROOT / "examples").rglob("*.sh"))
REQUIREMENTS = sorted((ROOT / "examples").glob("*/requirements.txt"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_settings_of_an_example_are_understood(folder: pathlib.Path) -> None:
    found, _ = settings.read(folder)

    assert (folder / (found.checked().entry or "main.py")).is_file()
    assert found.time, "it says how long it takes"
    assert found.mem, "it says how much memory it needs"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_script_of_an_example_can_be_executed_and_read(path: pathlib.Path) -> None:
    assert path.stat().st_mode & 0o111 == 0o111, "stead submit refuses it as --entry"
    subprocess.run(["sh", "-n", path], check=True, timeout=10)


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.parent.name)
def test_the_packages_of_an_example_have_exact_versions(path: pathlib.Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]

    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+(; .*)?", line)] == []
