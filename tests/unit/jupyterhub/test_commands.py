"""What the hub does with the commands that it runs as its users."""

from __future__ import annotations

import asyncio
import importlib.util
import pathlib
import sys
import types
from typing import Any
from unittest import mock

import pytest

PROGRAM = pathlib.Path(__file__).resolve().parents[3] / "roles/jupyterhub/files/slurmstead_hub.py"
BATCHSPAWNER = "batchspawner"
OTHERS = ("batchspawner.api", "jupyterhub.auth", "jupyterhub.handlers", "tornado.web", "traitlets")


class SlurmSpawner:
    """What run_command of batchspawner 1.3.0 does: it reads all that a command prints."""

    async def run_command(self, cmd: str, input: str | None = None, env: dict[str, str] | None = None) -> str:
        """Return what a command of the shell prints; raises RuntimeError with its errors if it fails."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_shell(cmd, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        out, errors = await process.communicate((input or "").encode())
        if process.returncode:
            raise RuntimeError(errors.decode().strip())
        return out.decode().strip()


class Packages(types.ModuleType):
    """A package of the hub, whose names are classes without content."""

    def __getattr__(self, name: str) -> Any:
        return type(name, (), {})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program of the role, without the packages of its environment."""
    for name in (BATCHSPAWNER, *OTHERS):
        monkeypatch.setitem(sys.modules, name, Packages(name))
    monkeypatch.setattr(sys.modules[BATCHSPAWNER], "SlurmSpawner", SlurmSpawner, raising=False)
    for name in ("Dict", "Unicode"):
        monkeypatch.setattr(sys.modules["traitlets"], name, mock.MagicMock(), raising=False)
    spec = importlib.util.spec_from_file_location("slurmstead_hub", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(hub: Any, command: str, given: str = "") -> str:
    """Return what the hub reads of a command."""
    spawner = hub.Spawner()
    spawner.environment = {"PATH": "/usr/bin:/bin"}
    out: str = asyncio.run(asyncio.wait_for(spawner.run_command(command, given), 30))
    return out


def test_a_command_gets_its_input_and_returns_its_output(hub: Any) -> None:
    assert run(hub, "env WORD='a \"b\" c' sh -c 'cat; echo $WORD'", "script\n") == 'script\na "b" c'


def test_a_user_sees_the_error_of_a_command(hub: Any) -> None:
    with pytest.raises(RuntimeError, match="^sbatch: error: no$"):
        run(hub, "sh -c 'echo sbatch: error: no >&2; exit 1'")


@pytest.mark.parametrize("command", ["yes", "sh -c 'yes >&2'"])
def test_no_output_of_a_user_fills_the_memory_of_the_hub(hub: Any, command: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        run(hub, command)

    assert len(str(raised.value)) <= hub.LARGEST
