"""Five hundred tasks: each once, in order, and fetched with progress, although their client is killed.

The program is no Python, so that what is measured is what Slurm and the client cost.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

TASKS = 500
SECONDS = 2400
"""For all tasks; six run at a time, and an emulated machine needs a second of each of its CPUs to start one."""

SQUARE = "#!/bin/sh\nn=${1:-$STEAD_TASK}\necho $((n * n))\n"
SQUARES = [f"{number * number}\n" for number in range(TASKS)]

MAP = f"""
import json, sys
from slurmstead.client import Client

class Progress:
    def began(self, what, size): print(what, size, file=sys.stderr)
    def copied(self, part): print(f"copied {{part:.2f}}", file=sys.stderr)
    def note(self, text): print(text, file=sys.stderr)

client = Client(observer=Progress())
job = client.map(sys.argv[1], [str(n) for n in range({TASKS})], id="sweep", entry="square", mem="100M")
for event in client.events(job):
    if event.state == "completed":
        print("ended", event.task, flush=True)
print(json.dumps([result.stdout for result in client.results(job)]))
"""


def squares(cluster: Any) -> Path:
    folder = cluster.project("squares", {"square": SQUARE})
    (folder / "square").chmod(0o755)
    assert isinstance(folder, Path)
    return folder


def test_an_array_is_single_and_whole_although_its_client_is_killed(cluster: Any) -> None:
    started = time.monotonic()
    command = ("submit", squares(cluster), "--entry", "square", "--array", f"0-{TASKS - 1}", "--mem", "100M", "--wait")
    with cluster.start(*command) as client:
        for line in client.stdout:
            seen = re.search(r"running (\d+)/", line)
            if seen and int(seen[1]) >= TASKS // 20:
                break
        client.kill()
        client.communicate()
    print(f"killed after {time.monotonic() - started:.0f} s: {line.strip()}")
    said = cluster.stead(*command, seconds=SECONDS)
    run = cluster.run_of(said)
    print(f"ended after {time.monotonic() - started:.0f} s")
    assert "already submitted by an interrupted call" in said
    cluster.check_single(run)
    with cluster.start("fetch", run) as fetching:
        deadline = time.monotonic() + 120
        while not list(cluster.results(run).rglob("*stdout*")):
            assert time.monotonic() < deadline, "the copy did not begin"
            time.sleep(0.05)
        fetching.kill()
        fetching.communicate()
    print(cluster.stead("fetch", run))

    tasks = cluster.results(run) / "tasks"
    assert [(tasks / str(task) / "stdout").read_text() for task in range(TASKS)] == SQUARES
    assert len(list(tasks.iterdir())) == TASKS


@pytest.mark.slow
def test_a_map_is_single_whole_and_in_order_although_its_client_is_killed(cluster: Any) -> None:
    program = cluster.directory / "map.py"
    program.write_text(MAP)
    call: dict[str, Any] = {"cwd": cluster.directory, "env": {**os.environ, **cluster.variables}, "text": True}
    command = [sys.executable, str(program), str(squares(cluster))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **call) as client:
        assert client.stdout is not None
        ended = 0
        for _ in client.stdout:
            ended += 1
            if ended == TASKS // 5:
                break
        client.kill()
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, **call)
    assert done.returncode == 0, done.stderr

    assert json.loads(done.stdout.splitlines()[-1]) == SQUARES
    copied = re.findall(r"copied (\S+)", done.stderr)
    assert copied[-1] == "1.00"
    assert len(set(copied)) > 2, "its progress was told"
    # Slurm may have forgotten it while it was fetched.
    assert cluster.submissions().count("sweep") <= 1
