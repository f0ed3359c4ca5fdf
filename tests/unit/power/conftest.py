"""The files of power saving, in a directory of the test."""

from __future__ import annotations

import pathlib

import pytest

from ansible.module_utils.slurmstead.workers import drains


@pytest.fixture(autouse=True)
def drains_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "FILE", tmp_path / "state" / "drains.json")
