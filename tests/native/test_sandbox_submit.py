"""`stead submit --container`: a laptop's folder runs in an image, and its results come back."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from slurmstead.errors import ExitCode
from tests.native.cluster import Cluster
from tests.native.laptop import environment
from tests.native.sandbox import gone, started

MAIN = """
import os, pathlib, pwd, sys
print("in", sys.argv[1], pwd.getpwuid(os.getuid()).pw_name, os.environ.get("FROM_IMAGE"))
print("path", os.environ["PATH"])
print("sees", *sorted(os.listdir("/share/home")), os.path.exists("/share/images"))
pathlib.Path("/usr/changed").write_text("in the image")
pathlib.Path("result.txt").write_text(sys.argv[1])
"""
SEEN = "path /opt/image:/usr/bin:/bin\nsees alice False\n"
IMAGES = "/share/images"

Stead = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def worker(release: str) -> Iterator[Cluster]:
    """A cluster of one worker that runs jobs in images; a test leaves it idle."""
    with started(release) as cluster:
        yield cluster


@pytest.fixture
def stead(worker: Cluster, tmp_path: pathlib.Path) -> Stead:
    """Run a verb on a laptop of alice's, whose ssh leads to control."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/main.py").write_text(MAIN)
    variables = {**environment(worker, tmp_path), "STEAD_HEAD": "alice@control"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "slurmstead", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300, check=False
        )

    return run


def test_a_folder_runs_in_an_image_and_its_results_come_back(worker: Cluster, stead: Stead, tmp_path: object) -> None:
    words = ("--mem=100M", f"--container={IMAGES}/plain", "--id=inside", "--wait")
    done = stead("submit", "project", *words, "--", "here")
    fetched = stead("fetch", "inside", "--to=results")
    logs = stead("logs", "inside")

    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    assert "in here alice yes\n" + SEEN in logs.stdout, logs.stdout + logs.stderr
    assert fetched.returncode == ExitCode.OK, fetched.stderr
    (result,) = pathlib.Path(str(tmp_path), "results").rglob("result.txt")
    assert result.read_text() == "here"
    assert worker.tried("test", "-e", "/usr/changed", on="node1").returncode == 1
    worker.wait_for(lambda: gone(worker), 60, "nothing is left on scratch")


@pytest.mark.slow
def test_each_task_of_an_array_runs_in_the_image(worker: Cluster, stead: Stead) -> None:
    words = ("--mem=100M", f"--container={IMAGES}/plain", "--id=array", "--array=0-2", "--wait")
    done = stead("submit", "project", *words, "--", "there")

    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    said = [stead("logs", "array", f"--task={task}").stdout for task in range(3)]
    assert ["in there alice yes\n" + SEEN in text for text in said] == [True] * 3, said


def test_an_image_that_does_not_exist_is_refused_before_anything_is_submitted(worker: Cluster, stead: Stead) -> None:
    jobs = worker.run("scontrol", "--oneliner", "show", "job")

    done = stead("submit", "project", f"--container={IMAGES}/plian", "--", "nowhere")

    assert done.returncode == ExitCode.USAGE, done.stdout + done.stderr
    assert f"{IMAGES}/plian is not an image" in done.stderr
    assert f"The images in {IMAGES} are online, plain." in done.stderr
    assert worker.run("scontrol", "--oneliner", "show", "job") == jobs
