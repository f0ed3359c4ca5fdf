"""Runs modules as Ansible does: arguments in, one JSON document out."""

from __future__ import annotations

import dataclasses
import grp
import importlib
import json
import os
import pwd
from typing import Any, Protocol

import pytest
from ansible.module_utils.testing import patch_module_args


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
        return "\n".join(part["prepared"] for part in self.result["diff"])


class RunModule(Protocol):
    """Run a module with arguments."""

    def __call__(self, name: str, *, check: bool = False, **arguments: Any) -> Outcome: ...


@pytest.fixture
def run_module(capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory) -> RunModule:
    """Run a module of plugins/modules in this process."""
    remote = str(tmp_path_factory.mktemp("remote"))

    def run(name: str, *, check: bool = False, **arguments: Any) -> Outcome:
        module = importlib.import_module(name)
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
