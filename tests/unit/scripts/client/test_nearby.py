"""Copies of a client that runs on the cluster."""

from __future__ import annotations

import os
import pathlib

import pytest

from slurmstead.client import nearby
from slurmstead.errors import IncompleteCopy, UsageError


def ignore(_: float) -> None:
    """Take a report."""


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with a program, a read-only file, a link and an empty directory."""
    found = tmp_path / "source"
    (found / "a").mkdir(parents=True)
    (found / "a" / "run").write_text("run")
    (found / "a" / "run").chmod(0o755)
    (found / "fixed").write_text("fixed")
    (found / "fixed").chmod(0o444)
    (found / "link").symlink_to("nowhere")
    (found / "empty").mkdir()
    return found


FILES = ("a/run", "fixed", "link", "empty/")


def test_files_links_and_directories_are_copied(source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    seen: list[float] = []
    target = tmp_path / "target"
    nearby.copy(source, FILES, target, (), seen.append)

    assert (target / "a" / "run").stat().st_mode & 0o777 == 0o755
    assert (target / "fixed").stat().st_mode & 0o777 == 0o644
    assert os.readlink(target / "link") == "nowhere"
    assert (target / "empty").is_dir()
    assert (target / "fixed").stat().st_mtime_ns == (source / "fixed").stat().st_mtime_ns
    assert seen[-1] == 1.0


def test_a_directory_that_was_a_link_in_an_earlier_attempt_changes_no_file_elsewhere(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    for directory in (target, elsewhere):
        directory.mkdir()
    (elsewhere / "run").write_text("precious")
    for name in ("a", "empty"):
        (target / name).symlink_to(elsewhere)
    nearby.copy(source, FILES, target, (), ignore)

    assert [(place / "run").read_text() for place in (elsewhere, target / "a")] == ["precious", "run"]
    assert not (target / "empty").is_symlink() and (target / "empty").is_dir()


def test_an_unchanged_file_is_a_hard_link_and_a_changed_one_is_not(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    nearby.copy(source, FILES, first, (), ignore)
    (source / "fixed").chmod(0o644)
    (source / "fixed").write_text("other")
    nearby.copy(source, FILES, second, [tmp_path / "none", first], ignore)

    assert (first / "a" / "run").samefile(second / "a" / "run")
    assert [(path / "fixed").read_text() for path in (first, second)] == ["fixed", "other"]


def test_a_second_copy_goes_on(source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    target = tmp_path / "target"
    nearby.copy(source, FILES, target, (), ignore)
    number = (target / "a" / "run").stat().st_ino
    (target / "fixed").write_text("half")
    nearby.copy(source, FILES, target, (), ignore)

    assert (target / "a" / "run").stat().st_ino == number
    assert (target / "fixed").read_text() == "fixed"


def test_a_missing_file_is_an_error_and_keeps_no_other_back(source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(IncompleteCopy, match="not every file could be copied: .*gone"):
        nearby.copy(source, ["gone", *FILES], tmp_path / "target", (), ignore)

    assert (tmp_path / "target" / "fixed").read_text() == "fixed"


def test_a_directory_where_a_file_must_be_is_an_error_that_repeating_does_not_solve(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "target" / "fixed").mkdir(parents=True)
    with pytest.raises(UsageError, match="Is a directory: .*fixed") as error:
        nearby.copy(source, FILES, tmp_path / "target", (), ignore)

    assert not isinstance(error.value, IncompleteCopy)
