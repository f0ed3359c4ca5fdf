"""The passwords of the broker's users are made once and are for their owners."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from slurmstead.paths import ROOT

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
    assert json.loads(passwords.read_text())["bob"] == ""


def test_a_former_user_who_comes_back_gets_another_password_and_the_same_port(
    run_module: RunModule, passwords: pathlib.Path
) -> None:
    def settings(users: list[str]) -> dict[str, str]:
        files = run_module("broker_users", users=users, address="10.0.0.3").result["files"]
        return {entry["path"]: entry["content"] for entry in files if "content" in entry}

    before, without, after = (settings(users) for users in (["bob", "alice"], ["alice"], ["alice", "bob"]))
    bob, alice = (f"/etc/slurmstead/celery/{user}.json" for user in ("bob", "alice"))

    assert before[alice] == without[alice] == after[alice]
    assert (bob in without, after[bob] == before[bob]) == (False, False)
    assert [json.loads(text[bob])["result_backend"].rpartition(":")[2] for text in (before, after)] == ["6379/0"] * 2


def test_each_user_has_a_redis_and_that_of_a_former_user_stops(run_module: RunModule, passwords: pathlib.Path) -> None:
    run_module("broker_users", users=["alice", "bob"], address="10.0.0.3")
    result = run_module("broker_users", users=["alice"], address="10.0.0.3").result
    directory, alice, bob = result["redis_files"]

    assert directory == {"path": "/etc/redis/slurmstead", "state": "directory"}
    assert (alice["path"], alice["mode"], alice["group"]) == ("/etc/redis/slurmstead/alice.conf", "0640", "redis")
    assert (bob["state"], bob["apply"]) == ("absent", ["systemctl stop slurmstead-redis@bob.service"])
    assert result["redis_commands"] == [*alice["apply"], *bob["apply"]]


def test_more_users_than_ports_stop_the_run(run_module: RunModule, passwords: pathlib.Path) -> None:
    outcome = run_module("broker_users", users=[f"user{number}" for number in range(500)], address="10.0.0.3")

    assert outcome.failed
    assert "has 421 ports, but 500 users and 0 former users need one each" in outcome.message
    assert not passwords.exists()


def test_the_advice_for_more_users_than_ports_helps(run_module: RunModule, passwords: pathlib.Path) -> None:
    first, second = ([f"{course}{number}" for number in range(300)] for course in ("first", "second"))
    run_module("broker_users", users=["alice", *first], address="10.0.0.3")
    outcome = run_module("broker_users", users=["alice", *second], address="10.0.0.3")

    assert "301 users and 300 former users" in outcome.message
    assert "take the new users out" in outcome.message and "move it away" not in outcome.message
    for users in (["alice"], ["alice", *second]):
        assert not run_module("broker_users", users=users, address="10.0.0.3").failed


def test_the_reason_of_a_failure_is_not_hidden(tmp_path: pathlib.Path) -> None:
    """A task with no_log hides its own message from `stead up`."""
    variables = {
        "ansible_python_interpreter": sys.executable,
        "celery_broker_accounts": [f"user{number}" for number in range(500)],
        "celery_broker_address": "10.0.0.3",
        "celery_broker_host": "localhost",
    }
    tasks = [{"ansible.builtin.include_tasks": str(ROOT / "roles/celery_broker/tasks/passwords.yml")}]
    play = {"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    done = subprocess.run(
        [sys.executable, "-m", "ansible.cli.playbook", "-i", "localhost,", "-c", "local", str(tmp_path / "play.yml")],
        cwd=ROOT,
        env={
            **os.environ,
            "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"),
            "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert "500 users and 0 former users" in done.stdout
    assert "censored" not in done.stdout


def test_a_broken_file_is_left_alone(run_module: RunModule, passwords: pathlib.Path) -> None:
    passwords.parent.mkdir()
    passwords.write_text("{")
    outcome = run_module("broker_users", users=["alice"], address="10.0.0.3")

    assert outcome.failed
    assert "every user gets a new password" in outcome.message
    assert passwords.read_text() == "{"
