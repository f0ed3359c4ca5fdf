"""Runs the test programs."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping

from slurmstead.paths import ROOT
from slurmstead.runner import processes
from slurmstead.testing.outcome import Outcome


def quietly(name: str, command: list[str], settings: Mapping[str, str]) -> Outcome:
    """Run a command and capture its output; `settings` are added to its environment."""
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Outcome(name, done.returncode == 0, time.monotonic() - started, done.stdout)


def aloud(name: str, command: list[str], settings: Mapping[str, str]) -> Outcome:
    """Run a command, and both print and capture its output; `settings` are added to its environment."""
    started = time.monotonic()
    lines = []
    with (
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
        processes.children_end_with_us(),
    ):
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    return Outcome(name, process.returncode == 0, time.monotonic() - started, "".join(lines))
