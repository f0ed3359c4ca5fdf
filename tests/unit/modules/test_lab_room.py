"""Which machines of a lab need memory and disk space of this computer."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.unit.modules.conftest import RunModule

HUGE = 1 << 30
"""MiB that no computer has."""


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A lab in which node1 runs, node2 was ended by a crash of this computer, and node3 was never started."""
    for name in ("node1", "node2"):
        (tmp_path / name).mkdir()
    with subprocess.Popen(["sleep", "60"]) as gone:
        (tmp_path / "node2/pid").write_text(f"{gone.pid}\n")
        gone.kill()
    program = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)", tmp_path / "node1/pid"]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        (tmp_path / "node1/pid").write_text(f"{process.pid}\n")
        yield tmp_path
        process.kill()


@pytest.mark.parametrize(
    ("name", "needed"), [("node1", False), ("node2", True), ("node3", True)], ids=["runs", "crashed", "new"]
)
def test_a_machine_that_does_not_run_needs_memory(
    run_module: RunModule, directory: pathlib.Path, name: str, needed: bool
) -> None:
    sizes = {**dict.fromkeys(("node1", "node2", "node3"), 0), name: HUGE}

    outcome = run_module("lab_room", directory=str(directory), image_cache=str(directory), memory=sizes)

    assert outcome.failed is needed
    assert (f"memory: 2 machines need {HUGE} MiB" in outcome.result.get("msg", "")) is needed


def test_a_machine_that_was_never_started_is_missing(run_module: RunModule, directory: pathlib.Path) -> None:
    sizes = dict.fromkeys(("node1", "node2", "node3"), 0)

    outcome = run_module("lab_room", directory=str(directory), image_cache=str(directory), memory=sizes)

    assert outcome.result["missing"] == ["node3"]
