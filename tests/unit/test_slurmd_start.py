"""Whether slurmd starts while the share does not answer."""

from __future__ import annotations

import pathlib
import shlex
import shutil
import subprocess

import jinja2

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "roles/slurmd/templates"


# In a process namespace of its own: other tests run jobs of Slurm at the same time.
ALONE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


def may_start(share: pathlib.Path, *before: str) -> bool:
    """Run the condition of the unit, beside a program."""
    environment = jinja2.Environment()
    environment.filters["comment"] = "# {}".format
    unit = environment.from_string((TEMPLATES / "slurmd.service.j2").read_text())
    lines = unit.render(ansible_managed="managed", slurmd_share=share).splitlines()
    (condition,) = [line.partition("=")[2] for line in lines if line.startswith("ExecStartPre=")]
    beside = f"{shlex.join(before)} & sleep 0.5; " if before else ""
    done = subprocess.run([*ALONE, "sh", "-c", f"{beside}{condition}"], capture_output=True, text=True, check=False)
    assert "unshare" not in done.stderr, done.stderr
    return done.returncode == 0


def test_it_waits_for_the_share(tmp_path: pathlib.Path) -> None:
    assert not may_start(tmp_path / "gone")
    assert may_start(tmp_path)


def test_jobs_that_run_have_it_without_the_share(tmp_path: pathlib.Path) -> None:
    program = shutil.copy("/bin/sleep", tmp_path / "slurmstepd")  # The name of those that hold a job.

    assert may_start(tmp_path / "gone", str(program), "60")
