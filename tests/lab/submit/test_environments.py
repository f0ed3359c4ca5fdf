"""Virtual environments: built once, on a worker, as a whole or not at all."""

from __future__ import annotations

import concurrent.futures
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import client
from tests.lab.submit.dependencies import environments, two_dependencies


@pytest.fixture(scope="module")
def cluster(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.Cluster]:
    """The lab's cluster; a build is a minute or more of an emulated machine, so the tests share their environments."""
    with client.connected(lab, tmp_path_factory.mktemp("laptop")) as found:
        yield found


def brought(place: Path) -> list[bytes]:
    """Return what the project printed and wrote."""
    return [(place / "stdout").read_bytes(), (place / "work/out/noise").read_bytes()]


def run_here(folder: Path, place: Path) -> list[bytes]:
    """Return what the project prints and writes on this computer."""
    shutil.copytree(folder, place / "work")
    with open(place / "stdout", "wb") as stdout:
        subprocess.run(
            [sys.executable, "main.py"],
            cwd=place / "work",
            env={**os.environ, "PYTHONPATH": ":".join(map(str, (folder / "wheels").iterdir()))},
            stdout=stdout,
            check=True,
        )
    return brought(place)


def test_five_submits_at_once_build_one_environment_and_bring_what_a_local_run_does(cluster: Any) -> None:
    folder = two_dependencies(cluster)
    before = environments(cluster)
    clients = [cluster.start("submit", folder, "--wait") for _ in range(5)]
    runs = []
    for process in clients:
        with process:
            out, words = process.communicate(timeout=900)
        assert process.returncode == 0, words
        runs.append(cluster.run_of(out))
    cluster.check_single(*runs)
    cluster.stead("fetch", *runs)

    assert [brought(cluster.results(run)) for run in runs] == [run_here(folder, cluster.directory / "local")] * 5
    (prefix,) = {(cluster.results(run) / "stderr").read_text().strip() for run in runs}
    link, target = sorted(environments(cluster) - before)
    assert prefix.endswith(f"/environments/{target}")
    assert target.startswith(f"{link}.build-")
    built = [run for run in runs if (cluster.results(run) / "environment.log").exists()]
    assert len(built) == 1, "one of them built it, and only that has a log of pip"


def test_a_build_that_is_cancelled_leaves_nothing_and_is_made_again(cluster: Any) -> None:
    folder = two_dependencies(cluster, "# cancelled\nalpha==1.0\n")
    before = environments(cluster)
    begun = sum(".build-" in name for name in before)
    below = f"{cluster.variables['STEAD_DIRECTORY']}/environments"
    until = f"until [ $(ls {below} | grep --count build-) -gt {begun} ]; do sleep 0.1; done"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # A build takes seconds, so the cancelling call waits for it on the head node.
        ended = pool.submit(cluster.user, f"{until}; ls {below}; scancel --user=$USER")
        run = cluster.run_of(cluster.stead("submit", folder))
        seen = set(ended.result().split())
    (cancelled,) = (name for name in seen - before if ".build-" in name)
    assert cluster.wait(run)["state"] == "cancelled"
    after = cluster.run_of(cluster.stead("submit", folder, "--wait", seconds=900))

    assert cluster.stead("logs", after) == "42\n"
    made = environments(cluster) - before
    assert len(made) == 2, "the environment and its name"
    assert cancelled not in made


def test_what_cannot_be_installed_fails_all_tasks_and_says_why(cluster: Any) -> None:
    folder = two_dependencies(cluster, "alpha==1.0\ngamma==3.0\n")
    before = environments(cluster)
    said = cluster.stead("submit", folder, "--array", "0-3", "--wait", code=4, seconds=900)

    assert "4 of 4 tasks failed" in said
    assert "No matching distribution found for gamma==3.0" in said
    assert environments(cluster) == before
    below = f"{cluster.variables['STEAD_DIRECTORY']}/runs/{cluster.run_of(said)}"
    logs = cluster.user(f"ls {below}/tasks/*/environment.log")
    assert len(logs.split()) == 1, "one of them tried"


def test_an_environment_that_nobody_used_for_a_month_goes_with_the_next_submission(cluster: Any) -> None:
    cluster.stead("submit", two_dependencies(cluster), "--wait", seconds=900)
    assert environments(cluster)
    cluster.user(f"touch --date='31 days ago' {cluster.variables['STEAD_DIRECTORY']}/environments/*/used")
    cluster.stead("submit", cluster.project("plain", {"main.py": "print(1)"}), "--wait")

    assert environments(cluster) == set()
