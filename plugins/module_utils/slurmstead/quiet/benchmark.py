# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A fixed amount of work, measured again and again on one CPU of each node, by jobs in the partition `quiet`.

The program is an argument of srun, because nothing has to be installed for it.
"""

from __future__ import annotations

import json
import math
import secrets
import subprocess
import time
from collections.abc import Sequence
from typing import Any

MEMORY = 192
"""MiB that a job asks for: two buffers and Python."""

PROGRAM = r"""
import gc, json, os, sys, time

TIMES = int(sys.argv[1])
BUFFER = 32 << 20


def compute():
    x = 1
    for _ in range(200_000):
        x = x * 1103515245 + 12345 & 0x7FFFFFFF


def memory():
    for _ in range(4):
        target[:] = source


def hardware():
    names = ("model name", "Hardware", "Model")
    with open("/proc/cpuinfo") as file:
        rows = [line.partition(":") for line in file]
    found = [value.strip() for name, _, value in rows if name.strip() in names]
    python = "Python %d.%d" % sys.version_info[:2]
    return "%s, %d CPUs, %s" % (found[0] if found else os.uname().machine, os.cpu_count(), python)


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


# The last CPU: on a board with slow and fast cores, a fast one.
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
source, target = bytearray(os.urandom(1 << 20) * (BUFFER >> 20)), bytearray(BUFFER)
gc.disable()
compute(), memory()
found = {work.__name__: [seconds(work) for _ in range(TIMES)] for work in (compute, memory)}
print(json.dumps({"quiet": os.path.exists("/run/slurmstead-quiet.json"), "hardware": hardware(), "seconds": found}))
"""
"""Prints a line of JSON: the seconds of each run, what the machine is, and whether Prolog has made it quiet."""


def command(node: str, name: str, times: int, seconds: float) -> list[str]:
    """Return the job for one node. If its parent is killed, srun releases the job."""
    return [
        *("setpriv", "--pdeathsig=TERM", "srun", "--partition=quiet", f"--job-name={name}", f"--nodelist={node}"),
        *("--nodes=1", "--ntasks=1", f"--mem={MEMORY}M", f"--time={math.ceil(seconds / 60) + 1}", "--chdir=/"),
        # Slurm would bind the only task to the first CPU.
        *("--mpi=none", "--input=none", "--cpu-bind=none"),
        *("/usr/bin/python3", "-I", "-S", "-c", PROGRAM, str(times)),
    ]


def measure(nodes: Sequence[str], times: int, seconds: float) -> dict[str, dict[str, Any]]:
    """Measure all nodes at the same time, each in a job. Returns answers, and problems of the others, by node."""
    name = f"quiet-{secrets.token_hex(4)}"
    until = time.monotonic() + seconds
    pipe = subprocess.PIPE
    started = {
        node: subprocess.Popen(command(node, name, times, seconds), stdout=pipe, stderr=pipe, text=True, cwd="/")
        for node in nodes
    }
    answers: dict[str, Any] = {}
    problems: dict[str, Any] = {}
    for node, process in started.items():
        try:
            out, err = process.communicate(timeout=max(0.1, until - time.monotonic()))
            answers[node] = json.loads(out.splitlines()[-1])
        except subprocess.TimeoutExpired:
            problems[node] = f"no answer within {seconds:.0f} s, {_reason(name, node)}"
            process.terminate()
            process.communicate()
        except (IndexError, ValueError):
            problems[node] = err.strip().splitlines()[-1][:200] if err.strip() else f"srun exited {process.returncode}"
    return {"answers": answers, "problems": problems}


def _reason(name: str, node: str) -> str:
    """Return what Slurm says of a job that has not ended."""
    # A reason can contain blanks; the last two are the node that it asked for, and the one that it has.
    asked = ["squeue", "--noheader", f"--name={name}", "--format=%T|%r|%n|%N"]
    lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
    rows = (line.split("|") for line in lines)
    state, why, *_ = next((row for row in rows if node in row[2:]), ("", ""))
    return f"its job is {state.lower()} ({why})" if state else "and Slurm does not have its job"
