"""A second run finds everything as it should be, changes nothing, restarts nobody, and has few tasks."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest

from slurmstead.paths import ROOT

TASKS = 65
"""A run has 57. Their number is its cost, and not its time, which was 119 s on one computer and 499 s on another."""


def test_a_second_run_changes_nothing(lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = lab.pids()
    command = [str(ROOT / "scripts/stead"), "up", "--inventory", str(lab.inventory)]
    started = time.monotonic()

    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)

    seconds = time.monotonic() - started
    with capsys.disabled():
        print(f"\nsecond run: {seconds:.0f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"site.yml: 0 changes on {len(lab.names)} hosts" in done.stdout, done.stdout
    assert lab.pids() == before


def test_check_mode_finds_nothing_to_do(lab: Any) -> None:
    run = lab.ansible("--check", "--diff")

    assert run.code == 0, run.output
    assert run.changed == {}
    assert 20 < run.output.count("\nTASK [") <= TASKS
