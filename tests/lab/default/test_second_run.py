"""A second run finds everything as it should be, changes nothing, restarts nobody, and is quick about it."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest

from slurmstead.paths import ROOT

PLAIN_SECONDS = 600
ACCELERATED_SECONDS = 240
"""Twice what is promised for two idle CPUs: these catch a task too many, not a busy computer."""


def test_plain_ansible_changes_nothing(lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = lab.pids()

    run = lab.ansible(plain=True)

    tasks = {host: counts["ok"] for host, counts in run.recap.items() if host in lab.names}
    with capsys.disabled():
        print(f"\nsecond run, plain: {run.seconds:.0f} s; tasks by host: {tasks}")
    assert run.code == 0, run.output
    assert run.changed == {}
    assert {host: counts["changed"] for host, counts in run.recap.items()} == dict.fromkeys(run.recap, 0)
    assert sorted(tasks) == lab.names
    assert lab.pids() == before
    assert run.seconds <= PLAIN_SECONDS


def test_the_accelerator_changes_nothing_either(lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = lab.pids()
    command = [str(ROOT / "scripts/stead"), "up", "--inventory", str(lab.inventory)]
    started = time.monotonic()

    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)

    seconds = time.monotonic() - started
    with capsys.disabled():
        print(f"\nsecond run, accelerated: {seconds:.0f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"site.yml: 0 changes on {len(lab.names)} hosts" in done.stdout, done.stdout
    assert lab.pids() == before
    assert seconds <= ACCELERATED_SECONDS


def test_check_mode_finds_nothing_to_do(lab: Any) -> None:
    run = lab.ansible("--check", "--diff")

    assert run.code == 0, run.output
    assert run.changed == {}
