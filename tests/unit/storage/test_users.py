"""Which processes use a directory, with real processes."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.storage import users


@contextlib.contextmanager
def process(program: str, directory: pathlib.Path, **variables: str) -> Iterator[int]:
    """Run a program that waits; yields its number when it has begun."""
    code = f"{program}\nprint(1, flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=directory,
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        child.stdout.readline()
        yield child.pid
        child.kill()


USES = {
    "directory": "",
    "file": "file = open({path!r} + '/file')\nimport os; os.chdir('/')",
    "mapped file": (
        "import mmap, os\nfile = os.open({path!r} + '/file', os.O_RDONLY)\n"
        "held = mmap.mmap(file, 0, prot=mmap.PROT_READ)\nos.close(file); os.chdir('/')"
    ),
}


@pytest.mark.parametrize("program", USES.values(), ids=USES)
def test_a_process_that_uses_the_directory_is_named(tmp_path: pathlib.Path, program: str) -> None:
    (tmp_path / "file").write_text("text")
    with process(program.format(path=str(tmp_path)), tmp_path) as number:
        (found,) = users.users([str(tmp_path)], of_jobs=True)

    assert f"(process {number} of " in found
    assert f" uses {tmp_path}" in found


def test_a_process_elsewhere_is_not(tmp_path: pathlib.Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "share2").mkdir()
    with process("", tmp_path / "share2"):
        assert users.users([str(tmp_path / "share")], of_jobs=True) == []


def test_a_process_of_a_job_counts_only_when_jobs_have_ended(tmp_path: pathlib.Path) -> None:
    with process("", tmp_path, SLURM_JOB_ID="7"):
        assert users.users([str(tmp_path)], of_jobs=False) == []
        assert len(users.users([str(tmp_path)], of_jobs=True)) == 1
