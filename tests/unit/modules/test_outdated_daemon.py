"""A daemon that started before its files is known, whoever wrote them. With real processes."""

from __future__ import annotations

import pathlib
import subprocess
import time
import types
from collections.abc import Callable, Iterator

import pytest

from ansible.module_utils.slurmstead import munge


@pytest.fixture
def unread(load_module: Callable[[str], types.ModuleType]) -> Callable[[int, list[str]], list[pathlib.Path]]:
    """The function of the module that compares."""
    function: Callable[[int, list[str]], list[pathlib.Path]] = load_module("outdated_daemon").unread
    return function


@pytest.fixture
def files(tmp_path: pathlib.Path) -> list[str]:
    """Two files of a daemon."""
    paths = [tmp_path / "daemon.conf", tmp_path / "users.conf"]
    for path in paths:
        path.write_text("first")
    return [str(path) for path in paths]


@pytest.fixture
def daemon(files: list[str]) -> Iterator[int]:
    """A process that started after its files came."""
    with subprocess.Popen(["sleep", "60"]) as process:
        time.sleep(2 * munge.SLACK)
        yield process.pid
        process.kill()


def test_a_daemon_that_started_after_its_files_is_left_alone(
    unread: Callable[..., object], daemon: int, files: list[str]
) -> None:
    assert unread(daemon, [*files, "/no/such/file"]) == []


def test_a_daemon_has_not_read_what_was_written_since_it_started(
    unread: Callable[..., object], daemon: int, files: list[str]
) -> None:
    pathlib.Path(files[1]).write_text("second")

    assert unread(daemon, files) == [pathlib.Path(files[1])]


def test_a_daemon_that_does_not_run_has_missed_nothing(unread: Callable[..., object], files: list[str]) -> None:
    assert unread(0, files) == []
