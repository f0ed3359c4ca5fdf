"""The cluster's answers about runs as Python objects."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, Self

ENDLESS = ("pending", "running")
"""States that can change; all others are final, and all final ones except `completed` are failures."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A submitted run: its ID, its Slurm jobs, and its directory on the share."""

    id: str
    jobs: tuple[str, ...]
    directory: str
    again: bool = False
    """Whether an interrupted attempt had already submitted it."""


@dataclasses.dataclass(frozen=True)
class TaskState:
    """A task; `state` is pending, running, completed, failed, timeout, out of memory, cancelled, preempted or lost."""

    task: int
    state: str
    node: str = ""
    exit_code: int | None = None
    reason: str = ""
    start: float | None = None
    end: float | None = None


@dataclasses.dataclass(frozen=True)
class State:
    """The state of a run; times in seconds since the epoch, memory (the most of any task) in bytes."""

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
        """Whether none of its tasks will run any more."""
        return self.state not in ENDLESS

    @classmethod
    def read(cls, summary: Mapping[str, Any]) -> Self:
        """Return the state that the head node sent; fields unknown to this version are ignored."""
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
    """A task of a run entered a state; `before` is None at its first sight."""

    run: str
    task: int
    state: str
    before: str | None
    node: str = ""
    exit_code: int | None = None


@dataclasses.dataclass(frozen=True)
class Result:
    """The results of a task on this computer: its output and every file that it wrote or changed, below `directory`."""

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
        """The program's standard output."""
        return self._read("stdout")

    @property
    def stderr(self) -> str:
        """The program's standard error."""
        return self._read("stderr")

    def _read(self, name: str) -> str:
        path = self.directory / name
        return path.read_text(errors="surrogateescape") if path.exists() else ""
