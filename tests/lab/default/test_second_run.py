"""A second run finds everything as it should be, changes nothing, and restarts nobody."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest

from slurmstead.paths import ROOT


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
