"""One run at a time holds a cluster, and a run that is dead holds nothing. With real processes, without ssh."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from ansible.module_utils.slurmstead.reach import cluster_lock

pytestmark = pytest.mark.slow

Take = Callable[[str, int], tuple[subprocess.Popen[str], str]]


@pytest.fixture
def holder(tmp_path: pathlib.Path) -> str:
    """The program of the control node, with a lock of its own."""
    return cluster_lock.HOLDER.replace("/run/slurmstead", str(tmp_path))


@pytest.fixture
def run() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for ansible-playbook."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.fixture
def take(holder: str) -> Iterator[Take]:
    """Start a watcher of a process; return it with the holder's first line."""
    with contextlib.ExitStack() as stack:

        def start(who: str, watched: int) -> tuple[subprocess.Popen[str], str]:
            command = [sys.executable, "-c", cluster_lock.WATCHER, str(watched), sys.executable, "-c", holder, who]
            watcher = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            stack.enter_context(watcher)
            assert watcher.stdout is not None
            return watcher, watcher.stdout.readline().strip()

        yield start


def test_the_second_is_told_who_was_first(take: Take, run: subprocess.Popen[bytes]) -> None:
    _, said = take("ann@laptop since noon", run.pid)
    second, answer = take("bob@desk since one", run.pid)

    assert (said, answer) == (cluster_lock.HELD, "ann@laptop since noon")
    assert second.wait(10) == 0
    run.kill()
    run.wait()


def test_a_run_that_was_killed_holds_nothing(take: Take, run: subprocess.Popen[bytes]) -> None:
    first, _ = take("ann", run.pid)
    run.kill()
    run.wait()
    first.wait(10)

    assert take("bob", 1 << 22)[1] == cluster_lock.HELD


def test_a_holder_that_hears_nothing_gives_up(holder: str) -> None:
    impatient = holder.replace(f"[], {cluster_lock.SILENCE}", "[], 0.2")
    with subprocess.Popen([sys.executable, "-c", impatient, "ann"], stdin=subprocess.PIPE) as process:
        assert process.wait(10) == 0
