# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Runs the programs of this machine."""

from __future__ import annotations

import os
import re
import subprocess

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

OPTIONS = re.compile(r"(SLURM|SLURMD|SRUN|SBATCH|SALLOC|SINFO|SQUEUE|SCANCEL)_(?!CONF$)")
"""Options for Slurm's commands in the environment, such as SLURM_TIME_FORMAT (squeue(1), ENVIRONMENT VARIABLES)."""

ANSWER = 10.0
"""Default timeout of a program in seconds."""


def run(*command: str, seconds: float = ANSWER, text: str = "") -> tuple[int, str, str]:
    """Run a command; return its exit code, output and errors. On a timeout the code is 124. `text` is its input."""
    inherited = {name: value for name, value in os.environ.items() if not OPTIONS.match(name)}
    try:
        done = subprocess.run(
            command,
            env={**inherited, "PATH": PATH, "LC_ALL": "C"},
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
