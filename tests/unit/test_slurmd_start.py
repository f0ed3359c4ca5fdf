"""Whether slurmd starts while the share does not answer."""

from __future__ import annotations

import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Iterator

import jinja2
import pytest

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "roles/slurmd/templates"


@pytest.fixture
def job(tmp_path: pathlib.Path) -> Iterator[None]:
    """A process with the name of those that hold a job."""
    program = tmp_path / "slurmstepd"
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "60"])
    yield
    process.kill()
    process.wait()


def may_start(share: pathlib.Path) -> bool:
    """Run the condition of the unit."""
    environment = jinja2.Environment()
    environment.filters["comment"] = "# {}".format
    unit = environment.from_string((TEMPLATES / "slurmd.service.j2").read_text())
    lines = unit.render(ansible_managed="managed", slurmd_share=share).splitlines()
    (condition,) = [line.partition("=")[2] for line in lines if line.startswith("ExecStartPre=")]
    return subprocess.run(shlex.split(condition), capture_output=True, check=False).returncode == 0


def test_it_waits_for_the_share(tmp_path: pathlib.Path) -> None:
    assert not may_start(tmp_path / "gone")
    assert may_start(tmp_path)


@pytest.mark.usefixtures("job")
def test_jobs_that_run_have_it_without_the_share(tmp_path: pathlib.Path) -> None:
    assert may_start(tmp_path / "gone")
