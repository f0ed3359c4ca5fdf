"""Runs modules as Ansible does: arguments in, one JSON document out."""

from __future__ import annotations

import dataclasses
import functools
import grp
import importlib.util
import json
import os
import pathlib
import pwd
import types
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from ansible.module_utils.testing import patch_module_args

MODULES = pathlib.Path(__file__).resolve().parents[3] / "plugins" / "modules"


@functools.cache
def load(name: str) -> types.ModuleType:
    """Import a module by its path: an action plugin can have the same name."""
    spec = importlib.util.spec_from_file_location(f"modules_{name}", MODULES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def load_module() -> Callable[[str], types.ModuleType]:
    """Import a module of plugins/modules."""
    return load


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a module ended; `result` is what it returned."""

    failed: bool
    result: dict[str, Any]

    @property
    def changed(self) -> bool:
        """Whether it says that it changed something."""
        return bool(self.result["changed"])

    @property
    def message(self) -> str:
        """Why it failed."""
        return str(self.result["msg"])

    @property
    def diff(self) -> str:
        """What `--diff` shows."""
        return "".join(part["prepared"] for part in self.result["diff"])


class RunModule(Protocol):
    """Run a module with arguments."""

    def __call__(self, name: str, *, check: bool = False, **arguments: Any) -> Outcome: ...


@pytest.fixture
def run_module(capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory) -> RunModule:
    """Run a module of plugins/modules in this process."""
    remote = str(tmp_path_factory.mktemp("remote"))

    def run(name: str, *, check: bool = False, **arguments: Any) -> Outcome:
        module = load(name)
        settings = {"_ansible_check_mode": check, "_ansible_remote_tmp": remote}
        capsys.readouterr()
        umask = os.umask(0o022)
        os.umask(umask)
        try:
            with patch_module_args({**settings, **arguments}), pytest.raises(SystemExit) as ended:
                module.main()
        finally:
            os.umask(umask)
        return Outcome(ended.value.code != 0, json.loads(capsys.readouterr().out))

    return run


@pytest.fixture(scope="session")
def me() -> dict[str, str]:
    """Owner and group of what this process makes."""
    return {"owner": pwd.getpwuid(os.geteuid()).pw_name, "group": grp.getgrgid(os.getegid()).gr_name}
