"""A directory in /run that no other user can enter, and locks in it that no other user can hold."""

from __future__ import annotations

import os
import pathlib
import stat

import pytest

from ansible.module_utils.slurmstead.reach import run_directory


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_is_closed_to_others(tmp_path: pathlib.Path) -> None:
    assert mode(run_directory.private(tmp_path / "own")) == 0o700


def test_an_open_directory_of_an_earlier_version_is_closed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "own").mkdir(mode=0o755)

    assert mode(run_directory.private(tmp_path / "own")) == 0o700


def test_a_link_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (tmp_path / "own").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PermissionError, match=f"{tmp_path}/own is not a directory"):
        run_directory.private(tmp_path / "own")
    assert mode(tmp_path / "elsewhere") == 0o755


def test_a_directory_of_another_user_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(run_directory.os, "geteuid", lambda: os.getuid() + 1)

    with pytest.raises(PermissionError, match="remove it"):
        run_directory.private(tmp_path / "own")


def test_a_lock_can_be_opened_by_its_owner_only(tmp_path: pathlib.Path) -> None:
    os.close(run_directory.open_lock(tmp_path / "own" / "a.lock"))

    assert (mode(tmp_path / "own"), mode(tmp_path / "own" / "a.lock")) == (0o700, 0o600)
