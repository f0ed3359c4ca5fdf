"""The module says what its run did in the words of Ansible."""

from __future__ import annotations

import pathlib
import types
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.change.change import FailedError, Outcome, RefusedError

RunModule = Callable[..., Any]


@pytest.fixture
def imitate(
    load_module: Callable[[str], types.ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Outcome | Exception], None]:
    """Have each run end in one way."""

    def end(how: Outcome | Exception) -> None:
        def go(*_: Any) -> Outcome:
            if isinstance(how, Exception):
                raise how
            return how

        monkeypatch.setattr(load_module("slurm_config").Run, "go", go)

    return end


def test_a_change_comes_with_its_plan_and_diff(
    imitate: Callable[..., None], run_module: RunModule, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _, text: warned.append(text))
    (tmp_path / "slurm.conf").write_text("A=1\n")
    imitate(Outcome(True, ["A: 1 → 2: reconfigure"], ["look here"], ["n1"], 0.123))

    done = run_module("slurm_config", directory=str(tmp_path), files={"slurm.conf": "A=2\n", "gres.conf": ""})

    assert (done.changed, done.result["plan"], done.result["restart_slurmd"]) == (
        True,
        ["A: 1 → 2: reconfigure"],
        ["n1"],
    )
    assert "-A=1\n+A=2\nA: 1 → 2: reconfigure" in done.diff
    assert "gres.conf" not in done.diff
    assert warned == ["look here"]


def test_nothing_to_do_is_no_change(
    imitate: Callable[..., None], run_module: RunModule, tmp_path: pathlib.Path
) -> None:
    imitate(Outcome())

    done = run_module("slurm_config", directory=str(tmp_path), files={"slurm.conf": "A=2\n"})

    assert (done.changed, done.result["diff"]) == (False, [])


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (RefusedError("slurm.conf line 1: no"), "Nothing was changed:\nslurm.conf line 1: no"),
        (
            FailedError("it does not run\nThe last good configuration is active again"),
            "it does not run\nThe last good configuration is active again",
        ),
        (OSError("no space"), "cannot write the configuration to "),
    ],
)
def test_a_failure_says_what_is_in_force(
    imitate: Callable[..., None], run_module: RunModule, tmp_path: pathlib.Path, how: Exception, said: str
) -> None:
    imitate(how)

    done = run_module("slurm_config", directory=str(tmp_path), files={"slurm.conf": "A=2\n"})

    assert done.failed
    assert done.message.startswith(said)


def test_without_slurm_conf_there_is_nothing_to_publish(run_module: RunModule) -> None:
    assert "expected slurm.conf in files" in run_module("slurm_config", files={"cgroup.conf": "A=1"}).message
