"""What an operator brings: which directory counts, and what is handed over from it."""

from __future__ import annotations

import base64
import importlib.util
import pathlib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("slurmstead_filters", ROOT / "plugins/filter/slurmstead.py")
assert SPEC is not None and SPEC.loader is not None
filters: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(filters)


def test_the_files_beside_the_inventory_count_if_there_are_some(tmp_path: pathlib.Path) -> None:
    assert filters.files_directory(str(tmp_path)) == str(ROOT / "files")
    (tmp_path / "files").mkdir()
    # Also an empty one: a site does not get half of its drop-ins from elsewhere.
    assert filters.files_directory(str(tmp_path)) == str(tmp_path / "files")


def test_an_inventory_of_the_command_line_has_the_files_of_the_project() -> None:
    assert filters.files_directory(None) == str(ROOT / "files")


def test_programs_are_handed_over_byte_by_byte(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(256)))
    (tmp_path / "b").symlink_to("a")

    assert filters.programs(str(tmp_path)) == dict.fromkeys("ab", base64.b64encode(bytes(range(256))).decode())


@pytest.mark.parametrize("directory", ["", "/no/such/directory"])
def test_a_directory_that_does_not_exist_has_no_programs(directory: str) -> None:
    assert filters.programs(directory) == {}


def test_the_project_brings_no_drop_ins_of_its_own() -> None:
    assert not [path for path in (ROOT / "files").glob("*") if path.name != "README.md"]
