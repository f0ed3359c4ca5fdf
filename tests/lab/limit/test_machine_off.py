"""A worker that is off during a run keeps its place in the cluster, and is completed by the run after its return."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.errors import ExitCode
from slurmstead.paths import ROOT

FILE = "/etc/default/slurmstead-health"
OWED = f"echo '# changed by hand' >> {FILE} && sync {FILE}"
"""Something that a run puts right on every worker."""


@pytest.fixture
def off(lab: Any) -> Iterator[str]:
    """A worker without power; it is on again in the end."""
    name = lab.workers[-1]
    lab.everywhere(lambda worker: lab.root(worker, OWED), lab.workers)
    lab.cut_power(name)
    yield name
    lab.boot(name)
    lab.wait_until_idle(180)


def test_the_others_are_completed_and_the_run_after_its_return_changes_only_it(lab: Any, off: str) -> None:
    command = [str(ROOT / "scripts/stead"), "up", "--inventory", str(lab.inventory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    said = done.stdout + done.stderr

    assert done.returncode == ExitCode.UNREACHABLE, said
    assert f"{off} could not be reached; the other hosts were completed" in said
    for worker in set(lab.workers) - {off}:
        assert "by hand" not in lab.root(worker, f"cat {FILE}")
    assert f"NodeName={off} " in lab.root(lab.control, "cat /etc/slurm/slurm.conf")

    lab.boot(off)
    run = lab.ansible()

    assert run.code == 0, run.output
    assert list(run.changed) == [off]
    assert "by hand" not in lab.root(off, f"cat {FILE}")
