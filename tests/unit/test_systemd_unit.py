"""A dry run and a unit that a package has not brought yet."""

from __future__ import annotations

import types
from typing import Any

import pytest
import systemd_unit

MISSING = {"failed": True, "msg": "Could not find the requested service slurmd.service: host"}


@pytest.mark.parametrize(
    ("state", "check_mode", "returned", "expected"),
    [
        ("started", True, MISSING, {"changed": True}),
        ("started", False, MISSING, MISSING),
        ("stopped", True, MISSING, {"changed": False}),
        ("stopped", False, MISSING, {"changed": False}),
        ("started", True, {"changed": False}, {"changed": False}),
        ("stopped", True, {"failed": True, "msg": "no systemd"}, {"failed": True, "msg": "no systemd"}),
    ],
)
def test_a_missing_unit_is_stopped_and_a_dry_run_would_start_it(
    monkeypatch: pytest.MonkeyPatch, state: str, check_mode: bool, returned: dict[str, Any], expected: dict[str, Any]
) -> None:
    action = object.__new__(systemd_unit.ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, args={"name": "slurmd.service", "state": state})
    monkeypatch.setattr(systemd_unit.ActionModule, "_execute_module", lambda *_, **given: {**returned})

    assert action.run() == expected
