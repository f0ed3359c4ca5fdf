"""What the cluster says of runs, as Python reads it."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, Self

ENDLESS = ("pending", "running")
"""States that change; all others are ends, and all of these but `completed` are bad ones."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A run that was submitted: its id, the jobs of Slurm that it is, and its directory on the share."""

    id: str
    jobs: tuple[str, ...]
    directory: str
    again: bool = False
    """Whether it had been submitted before by an attempt that was cut off."""


@dataclasses.dataclass(frozen=True)
class TaskState:
    """How a task stands: pending, running, completed, failed, timeout, out of memory, cancelled, preempted or lost."""

    task: int
    state: str
    node: str = ""
    exit_code: int | None = None
    reason: str = ""
    start: float | None = None
    end: float | None = None


@dataclasses.dataclass(frozen=True)
class State:
    """How a run stands; times in seconds since the epoch, memory (the most of any task) in bytes."""

    id: str
    name: str
    jobs: tuple[str, ...]
    array: str | None
    state: str
    counts: Mapping[str, int]
    submitted: float | None
    start: float | None
    end: float | None
    nodes: tuple[str, ...]
    exit_code: int | None
    reason: str
    cpu_seconds: float
    memory_bytes: int
    directory: str
    tasks: tuple[TaskState, ...]

    @property
    def ended(self) -> bool:
        """Whether nothing of it will run any more."""
        return self.state not in ENDLESS

    @classmethod
    def read(cls, summary: Mapping[str, Any]) -> Self:
        """Return the state that the head node sent; what this version does not know is left out."""
        known = {field.name for field in dataclasses.fields(cls)}
        task_fields = {field.name for field in dataclasses.fields(TaskState)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in summary.items()
        }
        values["tasks"] = tuple(
            TaskState(**{name: value for name, value in task.items() if name in task_fields})
            for task in summary["tasks"]
        )
        return cls(**{name: value for name, value in values.items() if name in known})


@dataclasses.dataclass(frozen=True)
class Event:
    """A change: a task of a run came into a state; `before` is None when it is seen for the first time."""

    run: str
    task: int
    state: str
    before: str | None
    node: str = ""
    exit_code: int | None = None


@dataclasses.dataclass(frozen=True)
class Result:
    """What a task left, on this computer: its output and every file that it wrote or changed, below `directory`."""

    task: int
    state: str
    exit_code: int | None
    node: str
    seconds: float
    cpu_seconds: float
    memory_bytes: int
    directory: pathlib.Path
    files: tuple[pathlib.Path, ...]

    @property
    def stdout(self) -> str:
        """What the program printed."""
        return self._read("stdout")

    @property
    def stderr(self) -> str:
        """What the program complained of."""
        return self._read("stderr")

    def _read(self, name: str) -> str:
        path = self.directory / name
        return path.read_text(errors="surrogateescape") if path.exists() else ""
