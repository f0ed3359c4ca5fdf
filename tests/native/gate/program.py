"""Runs a file of this directory on the control node."""

from __future__ import annotations

import pathlib

from tests.native import program
from tests.native.cluster import Cluster

HERE = pathlib.Path(__file__).resolve().parent
MISTAKES = HERE.parents[1] / "mistakes.py"


def run(cluster: Cluster, name: str, *arguments: str) -> str:
    """Return what the program prints."""
    return program.run(cluster, program.program(HERE / f"{name}.py", [MISTAKES]), *arguments)
