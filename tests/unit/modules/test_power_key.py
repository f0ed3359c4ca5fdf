"""The key with which control shuts workers down is made once, and again if a power cut damaged it."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest


def test_the_key_is_made_once(run_module: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "new" / "power-key")
    checked, first, second = (run_module("power_key", path=path, check=check) for check in (True, False, False))

    assert (checked.changed, checked.result["public"]) == (True, "")
    assert (first.changed, second.changed) == (True, False)
    assert first.result["public"] == second.result["public"] == pathlib.Path(f"{path}.pub").read_text().strip()


@pytest.mark.parametrize("lost", ["power-key", "power-key.pub"])
@pytest.mark.parametrize("empty", [True, False])
def test_a_key_of_which_a_power_cut_left_a_part_is_whole_again(
    run_module: Callable[..., Any], tmp_path: pathlib.Path, lost: str, empty: bool
) -> None:
    path = tmp_path / "power-key"
    before = run_module("power_key", path=str(path)).result["public"]
    (tmp_path / lost).write_text("") if empty else (tmp_path / lost).unlink()
    after = run_module("power_key", path=str(path))

    assert after.result["public"].startswith("ssh-ed25519 ")
    assert (after.result["public"] == before) == (lost != path.name)
    assert not run_module("power_key", path=str(path)).changed
