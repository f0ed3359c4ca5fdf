"""What the smoke test saw on a cluster, before it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ansible.module_utils.slurmstead.slurm.nodes import Node
from ansible.module_utils.slurmstead.smoke.probe import Answers


class Problem(NamedTuple):
    """What was seen where something else was expected, and what to do; `{node}` in the hint stands for the place."""

    seen: str
    hint: str


@dataclass
class Batch:
    """What became of the batch job."""

    error: str = ""
    """Why it was not submitted."""
    job: str = ""
    state: str = ""
    """Last state in squeue; empty when the job has left the queue."""
    node: str = ""
    reason: str = ""
    output: str | None = None
    """What control read from its output on the share; None: no such file."""
    directory: str = ""


@dataclass
class Findings:
    """Everything that was seen."""

    workers: Sequence[str]
    control: str
    user: str
    share: str
    scratch: str
    nodes: dict[str, Node] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)
    untested: dict[str, Problem] = field(default_factory=dict)
    """Node → why no job answered from it."""
    reported: set[str] = field(default_factory=set)
    """Nodes of a job that Slurm reported as out of memory."""
    batch: Batch = field(default_factory=Batch)
    nonce: str = ""
    share_error: str = ""
    """Why control could not use the share."""
    read_back: dict[str, str] = field(default_factory=dict)
    """Node → what control read from the file that this node wrote to the share."""
    munge_error: str = ""
    """Why control could not make and read a credential."""
    decoded: dict[str, str] = field(default_factory=dict)
    """Node → the status of its credential on control."""
