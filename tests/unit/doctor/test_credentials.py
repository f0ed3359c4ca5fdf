"""A machine reads credentials with nothing but a shell and unmunge."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import types
from typing import Any

import pytest

ACTION = pathlib.Path(__file__).resolve().parents[3] / "plugins" / "action" / "doctor_credentials.py"

UNMUNGE = """#!/bin/sh
read -r credential
case $credential in
  MUNGE:good:) ;;
  MUNGE:slow:) exec sleep 60 ;;
  *) echo "unmunge: Error: Invalid credential" >&2; exit 8 ;;
esac
"""


def reading(directory: pathlib.Path, credentials: dict[str, str]) -> dict[str, Any]:
    """Run the action on this machine, where the directory has the program."""

    def execute(command: str, in_data: bytes) -> dict[str, Any]:
        here = command.replace("/usr/bin/unmunge", str(directory / "unmunge")).replace("timeout 15", "timeout 0.5")
        # Ansible appends it (_low_level_execute_command in ansible/plugins/action/__init__.py).
        done = subprocess.run(["sh", "-c", f"{here} && sleep 0"], input=in_data, capture_output=True, check=False)
        said = done.stdout.decode()
        return {"rc": done.returncode, "stdout": said, "stdout_lines": said.splitlines(), "stderr": done.stderr}

    spec = importlib.util.spec_from_file_location("doctor_credentials", ACTION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    action = module.ActionModule.__new__(module.ActionModule)
    action._task = types.SimpleNamespace(args={"credentials": credentials})
    action._low_level_execute_command = execute
    return dict(action.run())


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with a program for the one of MUNGE, which needs a daemon."""
    (tmp_path / "unmunge").write_text(UNMUNGE)
    (tmp_path / "unmunge").chmod(0o755)
    return tmp_path


def test_who_signed_what_cannot_be_read_is_named_with_the_reason(machine: pathlib.Path) -> None:
    credentials = {"node1": "MUNGE:good:", "node2": "MUNGE:bad:", "node3": "MUNGE:slow:", "node4": "MUNGE:good:"}

    assert reading(machine, credentials) == {
        "changed": False,
        "refused": {"node2": "unmunge: Error: Invalid credential", "node3": "no answer within 15 s"},
    }


def test_a_machine_without_munge_reads_nothing(tmp_path: pathlib.Path) -> None:
    refused = reading(tmp_path, {"node1": "MUNGE:good:"})["refused"]

    assert "unmunge" in refused["node1"]
    assert "o such file" in refused["node1"]
