"""Programs of this machine, as our modules run them."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.reach.commands import run


def test_slurms_commands_have_no_options_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_TIME_FORMAT", "SQUEUE_PARTITION", "SLURM_CONF", "SLURMD_NODENAME"):
        monkeypatch.setenv(name, "x")

    _, out, _ = run("env")

    assert [line for line in out.splitlines() if line.startswith("S") and line.endswith("=x")] == ["SLURM_CONF=x"]
