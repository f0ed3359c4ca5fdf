"""What the accelerator says of a machine that goes away is told from all else that it says."""

from __future__ import annotations

import importlib.util
import types
from typing import Any

import ansible_mitogen.planner
import mitogen.core
import pytest
from ansible.errors import AnsibleConnectionFailure

from slurmstead.paths import ROOT


def loaded() -> types.ModuleType:
    """Return the strategy plugin as Ansible loads it."""
    spec = importlib.util.spec_from_file_location("accelerated", ROOT / "plugins/strategy/accelerated.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("words", "raised"),
    [
        ("the respondent Context has disconnected", AnsibleConnectionFailure),
        ("Channel was disconnected while connection attempt was in progress; this may …", AnsibleConnectionFailure),
        ("Channel closed by remote end.", AnsibleConnectionFailure),
        ("no route to 1004, my ID is 0", AnsibleConnectionFailure),
        ("EOF on stream; last 100 lines received:\n", AnsibleConnectionFailure),
        ("builtins.AttributeError: 'NoneType' object has no attribute 'protocol'", AnsibleConnectionFailure),
        ("EOF on stream; last 100 lines received:\nsudo: unknown user", mitogen.core.Error),
        ("builtins.OSError: [Errno 28] No space left on device", mitogen.core.Error),
    ],
)
def test_a_machine_that_went_away_is_unreachable(
    monkeypatch: pytest.MonkeyPatch, words: str, raised: type[Exception]
) -> None:
    def fail(_invocation: Any) -> None:
        raise mitogen.core.Error(words)

    monkeypatch.setattr(ansible_mitogen.planner, "invoke", fail)

    with pytest.raises(raised) as caught:
        loaded().reach(None)

    assert caught.type is raised
