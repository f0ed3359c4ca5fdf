"""Wherever a submission is killed, on the laptop or on the head node: no result is lost, and no task runs twice.

A point is the boundary of two statements of the program. It is killed there, and then repeated as its user or its
client does. Each run has a directory of its own on the cluster, so many are tried at once.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from slurmstead.client import bundle
from slurmstead.errors import UnreachableError
from tests.native.cluster import Cluster
from tests.native.laptop import environment

HERE = pathlib.Path(__file__).parent
KILLED = HERE / "killed.py"
ON_HEAD = ",".join(
    f"remote/{name}.py" for name in ("ledger", "library", "main", "states", "store", "submission", "sweep")
)
ON_LAPTOP = ",".join(
    f"client/{name}.py" for name in ("actions", "connection", "known", "pending", "submitting", "transfer")
)
STEAD = "import runpy; runpy.run_module('slurmstead', run_name='__main__')"
SEED = int(os.environ.get("STEAD_SEED") or 17)
AT_ONCE = 8

TASKS = 3
"""In two arrays, because MaxArraySize is 2."""
MAIN = """
import os
open(os.path.expanduser(f"~/ran/{os.environ['STEAD_RUN']}-{os.environ['STEAD_TASK']}"), "a").write("x")
"""

SBATCH = """#!/bin/sh
# Slurm really refuses an array that is named in this file.
while read -r refused; do
    case "$*" in *"--comment=stead:$refused "*) exec /usr/bin/sbatch --mem=999G "$@" ;; esac
done <"$HOME/refused"
exec /usr/bin/sbatch "$@"
"""

LIVE, OLD, BUILDING = KEYS = [f"py3.11-linux-x86_64-{digit * 16}" for digit in "123"]

GARBAGE = f"""
LIVE, OLD, BUILDING = {KEYS}
import os, pathlib, sys
place = pathlib.Path(sys.argv[1]).expanduser()
old = 1e9
for name in LIVE, OLD, BUILDING:
    (place / "environments" / f"{{name}}.build-1a2b3c4d").mkdir(parents=True)
for name in LIVE, OLD:
    (place / "environments" / name).symlink_to(f"{{name}}.build-1a2b3c4d")
    (place / "environments" / name / "used").touch()
os.utime(place / "environments" / OLD / "used", (old, old))
(place / "runs/abandoned/input").mkdir(parents=True)
(place / "runs/abandoned/.stead").touch()
os.utime(place / "runs/abandoned", (old, old))
(place / "runs/.half.1a2b3c4d.stead/input").mkdir(parents=True)
"""

LEFT = """
import pathlib, sys
place = pathlib.Path(sys.argv[1]).expanduser()
print(*(path.relative_to(place) for path in [*place.glob("*"), *place.glob("*/*")] if path.exists()))
"""

HAS_RESULTS = """
import pathlib, sys
run = pathlib.Path(sys.argv[1]).expanduser()
print((run / "done/0").exists() and not (run / "withdrawn").exists())
"""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a request, None if it was killed, and the boundaries that the program passed."""

    said: dict[str, Any] | None
    passed: int

    @property
    def error(self) -> str:
        """The kind of the refusal, or `killed`; empty if the request was carried out."""
        return "killed" if self.said is None else str(self.said.get("error", {}).get("kind", ""))


class Head:
    """The head node of a cluster, and what alice's client asks it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        cluster.run("mkdir", "ran", user="alice")
        self.write("killed.py", KILLED.read_text())
        self.write("refused", "")
        cluster.run("sh", "-c", "cat >/usr/local/bin/sbatch && chmod 755 /usr/local/bin/sbatch", text=SBATCH)

    def write(self, path: str, text: str) -> None:
        """Write a file in alice's home."""
        self.cluster.run("tee", path, user="alice", text=text)

    def python(self, program: str, *arguments: str) -> str:
        """Run a Python program as alice and return its output."""
        return self.cluster.run("python3", "-c", program, *arguments, user="alice")

    def ask(self, run: str, action: str, point: int = 0, **request: Any) -> Answer:
        """Send a request about a run; it is killed at a point, if that is not 0."""
        program = bundle.program()
        line = {"action": action, "directory": f"~/of/{run}", "program_bytes": len(program), **request}
        killed = ["python3", "-I", "killed.py", str(point), ON_HEAD, bundle.ON_HEAD]
        command = self.cluster.command(*killed, user="alice", seconds=300)
        done = subprocess.run(
            command, input=json.dumps(line).encode() + b"\n" + program, capture_output=True, check=False
        )
        if not done.stdout:
            assert point, done.stderr.decode()
            return Answer(None, point)
        # It can also be killed when it has answered; then it counts no more.
        return Answer(json.loads(done.stdout), int((done.stderr.split() or [point])[-1]))

    def jobs(self, run: str, **request: Any) -> list[dict[str, Any]]:
        """Return the jobs in a run's directory, as a client that asks again while Slurm does not answer."""
        for _ in range(20):
            answer = self.ask(run, "jobs", **request)
            if answer.error != "unreachable":
                assert answer.said is not None and "jobs" in answer.said, answer
                return list(answer.said["jobs"])
            time.sleep(0.5)
        raise AssertionError(f"Slurm did not answer 20 times: {answer}")

    def attempt(self, run: str, begin: int = 0, submit: int = 0) -> list[Answer]:
        """Submit a run, once, and return the answers to its requests; they are killed at these points."""
        request = {"id": run, "name": "kill", "project": "p", "entry": "main.py", "tasks": f"0-{TASKS - 1}"}
        begun = self.ask(run, "begin", begin, **request)
        if begun.error or begun.said["jobs"]:  # type: ignore[index]
            return [begun]
        self.write(f"of/{run}/runs/{run}/input/main.py", MAIN)
        request["token"] = begun.said["token"]  # type: ignore[index]
        return [begun, self.ask(run, "submit", submit, **request, files=[["main.py", len(MAIN)]])]

    def submit(self, run: str) -> Answer:
        """Submit a run as a client that repeats what was not answered; return the last answer."""
        for _ in range(20):
            last = self.attempt(run)[-1]
            if last.error in ("", "usage"):
                return last
            time.sleep(0.5)
        raise AssertionError(f"{run} is not submitted after 20 attempts: {last}")

    def wait(self, run: str, tasks: Sequence[int] = range(TASKS), of: str = "") -> list[str]:
        """Return the states of tasks of a run when they have ended; `of` is its directory, if that has another name."""
        deadline = time.monotonic() + 300
        while True:
            seen = self.jobs(of or run, jobs=[run])
            states = [task["state"] for task in seen[0]["tasks"] if task["task"] in tasks]
            if not {"pending", "running"} & set(states):
                return states
            assert time.monotonic() < deadline, seen
            time.sleep(1)

    def wait_until_gone(self, run: str) -> None:
        """Wait until Slurm has no job of a run that has not ended."""
        active = functools.partial(self.cluster.run, "squeue", "--me", "--noheader", "--format=%k", user="alice")
        self.cluster.wait_for(lambda: f":{run}:" not in active(), 300, f"the jobs of {run} have ended")

    def ran(self, run: str, tasks: Sequence[int] = range(TASKS)) -> list[str]:
        """Return how often tasks of a run have begun, as a text with an x for each time."""
        return [self.cluster.run("cat", f"ran/{run}-{task}", user="alice") for task in tasks]


@pytest.fixture(scope="module")
def head(release: str) -> Iterator[Head]:
    """A head node whose Slurm accepts arrays of two tasks."""
    with Cluster(release, 2, {"MaxArraySize": "2", "MinJobAge": "3600"}) as cluster:
        yield Head(cluster)


def submitted_once(head: Head, run: str, *, begin: int = 0, submit: int = 0, again: int = 0) -> None:
    """Kill a submission, and perhaps its repetition; then the run is submitted, and each task runs once."""
    head.python(GARBAGE, f"~/of/{run}")
    head.attempt(run, begin, submit)
    if again:
        head.attempt(run, begin=again)
    last = head.submit(run)

    assert last.error == "", last
    assert head.wait(run) == ["completed"] * TASKS, run
    assert head.ran(run) == ["x"] * TASKS, run
    left = head.python(LEFT, f"~/of/{run}/environments").split()
    assert {LIVE, f"{LIVE}/used", f"{BUILDING}.build-1a2b3c4d"} <= set(left), (run, left)
    assert (OLD in left) <= (f"{OLD}/used" in left), (run, left)


def refused(head: Head, run: str, *, submit: int) -> None:
    """Kill a submission whose second array Slurm refuses: the first keeps the results that it has, or is withdrawn."""
    head.attempt(run, submit=submit)
    head.wait_until_gone(run)
    had = head.python(HAS_RESULTS, f"~/of/{run}/runs/{run}") == "True"
    last = head.submit(run)

    assert last.error == "usage", last
    if had:
        assert head.wait(run, (0, 1)) == ["completed"] * 2, run
        assert head.ran(run, (0, 1)) == ["x"] * 2, run
    else:
        head.wait_until_gone(run)
        assert head.jobs(run) == [], run


class Laptop:
    """A computer with a folder, whose user submits it; its home is a directory here."""

    def __init__(self, head: Head, place: pathlib.Path) -> None:
        self.folder = place / "pi"
        self.folder.mkdir(parents=True)
        (self.folder / "main.py").write_text(MAIN)
        self.environment = environment(head.cluster, place)
        self.directory = f"~/of/{place.name}"

    def submit(self, point: int = 0) -> subprocess.CompletedProcess[str]:
        """Submit the folder; the command is killed at a point."""
        options = ["--head=alice@control", f"--directory={self.directory}", f"--array=0-{TASKS - 1}"]
        killed = [sys.executable, "-P", str(KILLED), str(point), ON_LAPTOP, STEAD]
        command = [*killed, "submit", str(self.folder), *options]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)


def submitted_from(laptop: Laptop, head: Head, *, point: int) -> None:
    """Kill a laptop's submission and repeat it: there is one run, or its user knew the first one."""
    first, second = laptop.submit(point), laptop.submit()
    if second.returncode == UnreachableError.exit_code:
        second = laptop.submit()

    assert second.returncode == 0, (point, second.stderr)
    name = laptop.directory.rpartition("/")[2]
    runs = [job["id"] for job in head.jobs(name)]
    assert len(runs) == 1 or (len(runs) == 2 and first.stdout.startswith("job ")), (point, runs, first.stdout)
    for run in runs:
        assert head.wait(run, of=name) == ["completed"] * TASKS, (point, run)
        assert head.ran(run) == ["x"] * TASKS, (point, run)


def failures(trials: Sequence[Callable[[], None]]) -> list[BaseException]:
    """Make all trials, and return the errors of those that failed."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        failed = [error for trial in [pool.submit(trial) for trial in trials] if (error := trial.exception())]
    print(f"{len(trials)} kill points (seed {SEED}), {len(failed)} failed")
    for error in failed:
        traceback.print_exception(error)
    return failed


def some(number: int, last: int) -> list[int]:
    """Return so many points up to the last one, and that at least once."""
    return sorted(random.Random(SEED + number).sample(range(1, last + 1), min(number, last)))


FEW_OR_ALL = pytest.mark.parametrize("part", [25, pytest.param(1, marks=pytest.mark.slow)])
"""One of so many points."""


@FEW_OR_ALL
def test_a_head_node_that_is_killed_loses_no_result_and_runs_no_task_twice(head: Head, part: int) -> None:
    name = f"h{part}"
    whole = [answer.passed for answer in head.attempt(f"{name}-whole")]
    again = head.ask(f"{name}-whole", "begin", id=f"{name}-whole", project="p").passed
    points = random.Random(SEED)
    trials = [
        *(functools.partial(submitted_once, head, f"{name}-begin-{at}", begin=at) for at in some(30 // part, whole[0])),
        *(
            functools.partial(submitted_once, head, f"{name}-submit-{at}", submit=at)
            for at in some(120 // part, whole[1])
        ),
        *(
            functools.partial(submitted_once, head, f"{name}-again-{at}", submit=at, again=points.randint(1, 2 * again))
            for at in some(50 // part, whole[1])
        ),
    ]
    refusals = [f"{name}-refused-{at}" for at in some(60 // part, whole[1])]
    head.write("refused", "".join(f"{run}:1\n" for run in refusals))
    trials += [functools.partial(refused, head, run, submit=int(run.rpartition("-")[2])) for run in refusals]

    assert failures(trials) == []


@FEW_OR_ALL
def test_a_laptop_that_is_killed_submits_once(head: Head, tmp_path: pathlib.Path, part: int) -> None:
    whole = Laptop(head, tmp_path / f"l{part}-whole").submit()
    assert whole.returncode == 0, whole.stderr
    trials = [
        functools.partial(submitted_from, Laptop(head, tmp_path / f"l{part}-{at}"), head, point=at)
        for at in some(60 // part, int(whole.stderr.split()[-1]))
    ]

    assert failures(trials) == []
