# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Runs the programs of this machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

OPTIONS = re.compile(r"(SLURM|SLURMD|SRUN|SBATCH|SALLOC|SINFO|SQUEUE|SCANCEL)_")
"""Options for Slurm's commands in the environment, such as SLURM_TIME_FORMAT (squeue(1), ENVIRONMENT VARIABLES)."""

ANSWER = 10.0
"""Default timeout of a program in seconds."""


def without_options(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the options for Slurm's commands in it.

    >>> without_options({"SLURM_CONF": "/etc/slurm/slurm.conf", "SQUEUE_FORMAT": "%i", "HOME": "/root"})
    {'SLURM_CONF': '/etc/slurm/slurm.conf', 'HOME': '/root'}
    """
    return {name: value for name, value in inherited.items() if name == "SLURM_CONF" or not OPTIONS.match(name)}


def printable(said: str) -> str:
    """Return a text of users or of another machine without control characters for a terminal.

    >>> printable("a\x1b[2J")
    'a?[2J'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in said)


def run(*command: str, seconds: float = ANSWER, text: str = "") -> tuple[int, str, str]:
    """Run a command; return its exit code, output and errors. On a timeout the code is 124. `text` is its input."""
    try:
        done = subprocess.run(
            command,
            env={**without_options(os.environ), "PATH": PATH, "LC_ALL": "C"},
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"{command[0]} did not answer within {seconds:.0f} s"
    except FileNotFoundError:
        return 127, "", f"{command[0]} is not installed"
    return done.returncode, done.stdout, done.stderr
