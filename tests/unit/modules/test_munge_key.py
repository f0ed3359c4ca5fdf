"""The module makes the key of a cluster once, and again if a power cut emptied its file."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest


def test_a_key_is_made_where_it_is_missing(
    run_module: Callable[..., Any],
    load_module: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
) -> None:
    key, munge = tmp_path / "munge.key", load_module("munge_key").munge
    there = munge.is_there
    monkeypatch.setattr(munge, "is_installed", lambda: True)
    monkeypatch.setattr(munge, "is_there", lambda: there(key))
    monkeypatch.setattr(munge, "write", key.write_bytes)
    key.touch()

    assert run_module("munge_key", create=True, check=True).changed
    assert key.read_bytes() == b""
    assert run_module("munge_key", create=True).changed
    made = key.read_bytes()
    assert not run_module("munge_key", create=True).changed
    assert (key.read_bytes(), len(made)) == (made, 128)
