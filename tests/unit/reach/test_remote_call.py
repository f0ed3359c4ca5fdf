"""A function of ours runs in a Python that has nothing of ours, as it does on a machine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from ansible.module_utils.slurmstead.reach import remote_call


def execute(command: str, in_data: bytes) -> dict[str, Any]:
    """Run a command as Ansible would, without a machine."""
    done = subprocess.run(["sh", "-c", command], input=in_data, capture_output=True, check=False)
    return {"rc": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()}


@pytest.mark.slow
def test_the_facts_of_a_machine_are_collected_with_all_that_this_takes_and_nothing_else() -> None:
    wanted: dict[str, Any] = {
        "names": {"localhost": "10.0.0.1"},
        "units": ["munge"],
        "paths": {"/": False},
        "ports": {"tcp": [22], "udp": []},
        "homes": ["/share/home", ""],
        "salt": "s",
        "peers": {},
    }

    result = remote_call.ask(execute, "doctor.facts.everything", "collect", wanted)

    seen = result["returned"]
    assert seen["wanted"] == {"units": ["munge"], "paths": {"/": False}, "ports": {"tcp": [22], "udp": []}}
    assert seen["misresolved"] == {"localhost": ["127.0.0.1"]}
    assert seen["paths"]["/"]["size"] > 0
    assert {
        "addresses",
        "clock",
        "accounts",
        "key",
        "failed",
        "packages",
        "listening",
        "slurm",
        "people",
    } <= seen.keys()


def test_the_program_does_not_need_what_is_installed_with_ansible() -> None:
    text = remote_call.program("identity.credentials", "refused", {"credentials": {}})
    listing = text + "\nprint(json.dumps([name for name in sys.modules if name.startswith('ansible.')]))\n"

    done = subprocess.run([sys.executable, "-IS", "-"], input=listing, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout.splitlines()[0]) == {}
    assert set(json.loads(done.stdout.splitlines()[1])) == {
        "ansible.module_utils",
        "ansible.module_utils.slurmstead",
        "ansible.module_utils.slurmstead.identity",
        "ansible.module_utils.slurmstead.identity.credentials",
    }


def test_a_call_that_fails_says_why() -> None:
    result = remote_call.ask(execute, "identity.credentials", "refused", {"unknown": 1})

    assert result["failed"]
    assert "unexpected keyword argument 'unknown'" in result["msg"]


def test_a_machine_without_python_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_call, "COMMAND", "/no/such/python -IS -")

    result = remote_call.ask(execute, "identity.credentials", "refused", {"credentials": {}})

    assert result["failed"]
    assert "not found" in result["msg"]
