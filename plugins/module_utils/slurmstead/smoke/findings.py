"""The observations of the smoke test, before the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ansible.module_utils.slurmstead.slurm.nodes import Node
from ansible.module_utils.slurmstead.smoke.probe import Answers


class Problem(NamedTuple):
    """What was seen instead of the expected result, and what to do; `{node}` in the hint stands for the node."""

    seen: str
    hint: str


@dataclass
class Batch:
    """The result of the batch job."""

    error: str = ""
    """Why it was not submitted."""
    job: str = ""
    state: str = ""
    """Last state in squeue; empty when the job has left the queue."""
    node: str = ""
    reason: str = ""
    output: str | None = None
    """Its output on the share, as read on control; None: no such file."""
    directory: str = ""


@dataclass
class Findings:
    """All observations."""

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
    """Node → content of the file that this node wrote to the share, as read on control."""
    munge_error: str = ""
    """Why control could not create and decode a credential."""
    decoded: dict[str, str] = field(default_factory=dict)
    """Node → the status of its credential on control."""
