"""A mixed cluster needs no hardware in its inventory, and believes none that is not there."""

from __future__ import annotations

import json
from typing import Any


def test_what_nobody_declares_is_measured(lab: Any, board: str) -> None:
    (other,) = (name for name in lab.workers if name != board)
    assert not any("slurm_nodes" in variables for variables in lab.variables.values())

    said = lab.user("sinfo --noheader --Node --format='%N %c %f'").splitlines()

    assert sorted(said) == sorted([f"{board} 8 arm64,rk3588,big4,little4", f"{other} 2 amd64"])


def test_more_than_was_measured_is_refused_with_both_numbers(lab: Any, board: str) -> None:
    (other,) = (name for name in lab.workers if name != board)
    before = lab.pids()

    run = lab.ansible(
        "--tags",
        "slurm",
        "--extra-vars",
        json.dumps({"slurm_nodes": {board: {"RealMemory": 65536}, other: {"CPUs": 16}}}),
    )

    assert run.code == 2, run.output
    assert not run.changed
    assert (
        f"{board}: slurm_nodes: RealMemory=65536 is declared, but the node has {memory(lab, board)} MiB" in run.output
    )
    assert f"{other}: slurm_nodes: CPUs=16 is declared, but the node has 2 CPUs" in run.output
    assert lab.pids() == before


def memory(lab: Any, name: str) -> int:
    """Return what slurmd measures on a node, in MiB."""
    words = lab.root(name, "slurmd -C 2>/dev/null").split()
    (measured,) = (word.partition("=")[2] for word in words if word.startswith("RealMemory="))
    return int(measured)
