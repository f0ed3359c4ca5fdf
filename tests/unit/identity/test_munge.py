"""A key comes to its place for its daemon alone, and a daemon that is older than it is known. With real processes."""

from __future__ import annotations

import os
import pathlib
import pwd
import subprocess
import time
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.identity import munge

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def key(tmp_path: pathlib.Path) -> pathlib.Path:
    """A key that came to its place."""
    path = tmp_path / "munge.key"
    munge.write(b"first", path, ME)
    return path


@pytest.fixture
def daemon(key: pathlib.Path) -> Iterator[int]:
    """A process that started after the key came."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def test_an_empty_file_is_no_key(tmp_path: pathlib.Path, key: pathlib.Path) -> None:
    (tmp_path / "empty").touch()

    assert munge.is_there(key)
    assert not munge.is_there(tmp_path / "empty")
    assert not munge.is_there(tmp_path / "missing")


def test_a_key_is_readable_by_its_owner_alone(key: pathlib.Path) -> None:
    assert key.stat().st_mode & 0o7777 == 0o400
    assert munge.is_right(b"first", key, ME)
    assert list(key.parent.iterdir()) == [key]


def test_another_key_or_mode_is_not_right(key: pathlib.Path) -> None:
    assert not munge.is_right(b"second", key, ME)
    key.chmod(0o440)
    assert not munge.is_right(b"first", key, ME)


def test_a_key_that_cannot_be_written_leaves_the_old_one_and_nothing_else(
    key: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(munge.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        munge.write(b"second", key, ME)

    assert munge.is_right(b"first", key, ME)
    assert list(key.parent.iterdir()) == [key]


def test_a_daemon_that_started_after_the_key_came_has_read_it(key: pathlib.Path, daemon: int) -> None:
    assert munge.has_read(daemon, key)


def test_a_daemon_that_is_older_than_the_key_has_not(key: pathlib.Path, daemon: int) -> None:
    time.sleep(2 * munge.SLACK)
    munge.write(b"second", key, ME)

    assert not munge.has_read(daemon, key)


def test_a_daemon_that_is_older_than_the_key_was_touched_has_not(key: pathlib.Path, daemon: int) -> None:
    time.sleep(2 * munge.SLACK)
    munge.touch(key)

    assert not munge.has_read(daemon, key)


def test_no_daemon_has_read_nothing(key: pathlib.Path) -> None:
    # The kernel's limit for process numbers (proc(5), pid_max).
    assert not munge.has_read(1 << 22, key)
