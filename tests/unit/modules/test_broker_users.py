"""The passwords of the broker's users are made once and are for their owners."""

from __future__ import annotations

import json
import pathlib
import stat
import types
from collections.abc import Callable
from typing import Any

import pytest

RunModule = Callable[..., Any]


@pytest.fixture
def passwords(
    load_module: Callable[[str], types.ModuleType], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """The file of the passwords, which is not there."""
    path = tmp_path / "slurmstead" / "celery_broker.json"
    monkeypatch.setattr(load_module("broker_users"), "PASSWORDS", path)
    return path


def test_the_first_run_makes_passwords_that_root_alone_can_read(run_module: RunModule, passwords: pathlib.Path) -> None:
    outcome = run_module("broker_users", users=["alice"], address="10.0.0.3")

    assert outcome.changed
    assert stat.S_IMODE(passwords.stat().st_mode) == 0o400
    assert list(json.loads(passwords.read_text())) == ["alice"]


def test_a_second_run_changes_nothing(run_module: RunModule, passwords: pathlib.Path) -> None:
    first = run_module("broker_users", users=["alice"], address="10.0.0.3")
    second = run_module("broker_users", users=["alice"], address="10.0.0.3")

    assert not second.changed
    assert {**second.result, "changed": True} == first.result


def test_a_dry_run_writes_nothing(run_module: RunModule, passwords: pathlib.Path) -> None:
    assert run_module("broker_users", check=True, users=["alice"], address="10.0.0.3").changed
    assert not passwords.exists()


def test_a_users_file_is_that_users_alone(run_module: RunModule, passwords: pathlib.Path) -> None:
    outcome = run_module("broker_users", users=["alice"], address="10.0.0.3")
    (entry,) = outcome.result["files"]

    assert (entry["path"], entry["owner"], entry["mode"]) == ("/etc/slurmstead/celery/alice.json", "alice", "0400")
    assert json.loads(entry["content"])["broker_url"].endswith("@10.0.0.3:5672/alice")


def test_the_file_of_a_former_user_goes(run_module: RunModule, passwords: pathlib.Path) -> None:
    run_module("broker_users", users=["alice", "bob"], address="10.0.0.3")
    outcome = run_module("broker_users", users=["alice"], address="10.0.0.3")

    assert {"path": "/etc/slurmstead/celery/bob.json", "state": "absent"} in outcome.result["files"]
    assert "bob" in json.loads(passwords.read_text())


def test_a_broken_file_is_left_alone(run_module: RunModule, passwords: pathlib.Path) -> None:
    passwords.parent.mkdir()
    passwords.write_text("{")
    outcome = run_module("broker_users", users=["alice"], address="10.0.0.3")

    assert outcome.failed
    assert "every user gets a new password" in outcome.message
    assert passwords.read_text() == "{"
