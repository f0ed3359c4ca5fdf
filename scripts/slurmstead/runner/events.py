"""The events of an Ansible run, typed: what ansible-runner reports as nested dictionaries."""

import dataclasses
import enum
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

SECRET = "(its result is hidden because the task handles a secret)"
OUTPUT_LINES = 15
"""Maximum number of lines to keep of a failed command's output."""

COLOUR = re.compile("\x1b\\[[0-9;]*m")
CHANGED = re.compile(r"^changed: \[", re.MULTILINE)
"""The line of a task that changed something; the task's own output may precede it."""
DELEGATED = re.compile(r"^[a-z]+: \[\S+ -> ([^](\s]+)", re.MULTILINE)
"""The line of a delegated task; no other part of the event names the delegate."""


class Status(enum.Enum):
    """How a task ended on a host."""

    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    IGNORED = "ignored"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


@dataclasses.dataclass(frozen=True)
class Task:
    """A task; `path` is the file that holds it."""

    uuid: str
    name: str
    action: str = ""
    path: pathlib.PurePath = pathlib.PurePath()

    @property
    def is_validation(self) -> bool:
        """Whether a failure of this task is a mistake in the inventory, not on a machine."""
        return self.path.name == "validate-inventory.yml" or self.action.rpartition(".")[2] == "validate_argument_spec"


@dataclasses.dataclass(frozen=True)
class PlayStarted:
    """A play begins."""

    name: str


@dataclasses.dataclass(frozen=True)
class TaskStarted:
    """A task begins; no host has started it yet."""

    task: Task


@dataclasses.dataclass(frozen=True)
class HostStarted:
    """A task begins on a host."""

    task: Task
    host: str


@dataclasses.dataclass(frozen=True)
class HostEnded:
    """A task ended on a host; `message` explains a failure, `result` is what the module returned (a secret: empty).

    `delegate` is the host that ran the task instead of `host`; if it is unreachable, Ansible reports `host`.
    """

    task: Task
    host: str
    status: Status
    message: str = ""
    result: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    delegate: str = ""

    @property
    def machine(self) -> str:
        """The host on which the task ran."""
        return self.delegate or self.host


@dataclasses.dataclass(frozen=True)
class FileChanged:
    """The output of `--diff` for a host."""

    host: str
    text: str


@dataclasses.dataclass(frozen=True)
class Ended:
    """The run ended; each mapping has the number of tasks by host."""

    ok: Mapping[str, int]
    failed: Mapping[str, int]
    unreachable: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Said:
    """Ansible's messages outside of tasks: warnings, and why a run could not start."""

    text: str


Event = PlayStarted | TaskStarted | HostStarted | HostEnded | FileChanged | Ended | Said


def explain(result: Mapping[str, Any]) -> str:
    """Return the explanation of a failed result: message, expected, seen, hint, the end of a command's output."""
    if "censored" in result:
        return SECRET
    items = [item for item in result.get("results") or [] if isinstance(item, dict) and item.get("failed")]
    if items:
        return "\n".join(dict.fromkeys(explain(item) for item in items))
    return "\n".join(_explanations(result)) or "no reason given"


def _explanations(result: Mapping[str, Any]) -> Iterator[str]:
    message = result.get("msg") or result.get("reason") or ""
    yield from (str(line).rstrip() for line in (message if isinstance(message, list) else str(message).splitlines()))
    for part in ("expected", "seen", "hint"):
        if result.get(part):
            yield f"{part}: {result[part]}"
    if "rc" in result or "module_stderr" in result:
        output = result.get("stderr") or result.get("module_stderr") or result.get("stdout") or ""
        if str(output).strip() not in str(message):
            yield from str(output).strip().splitlines()[-OUTPUT_LINES:]


def _stdout(raw: Mapping[str, Any]) -> str:
    # ansible-runner gives Ansible a pseudo-terminal, so its output is coloured.
    return COLOUR.sub("", str(raw.get("stdout") or ""))


def _task(data: Mapping[str, Any]) -> Task:
    name, role = str(data.get("task") or data.get("name") or ""), str(data.get("role") or "")
    if role and not name.startswith(f"{role} : "):
        name = f"{role} : {name}"
    path, _, _ = str(data.get("task_path") or "").rpartition(":")
    return Task(
        uuid=str(data.get("task_uuid") or ""),
        name=name,
        action=str(data.get("resolved_action") or data.get("task_action") or ""),
        path=pathlib.PurePath(path),
    )


def _changed(raw: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    # For a task with a secret, ansible-runner also hides the change; Ansible's output shows it.
    return bool(CHANGED.search(_stdout(raw)) if "censored" in result else result.get("changed"))


def _ended(raw: Mapping[str, Any], kind: str) -> HostEnded:
    data = raw["event_data"]
    result = data.get("res") or {}
    delegated = DELEGATED.search(_stdout(raw))
    if kind == "runner_on_unreachable":
        status = Status.UNREACHABLE
    elif kind == "runner_on_failed":
        status = Status.IGNORED if data.get("ignore_errors") else Status.FAILED
    elif kind == "runner_on_skipped":
        status = Status.SKIPPED
    else:
        status = Status.CHANGED if _changed(raw, result) else Status.OK
    failed = status in (Status.FAILED, Status.IGNORED, Status.UNREACHABLE)
    return HostEnded(
        task=_task(data),
        host=str(data.get("host")),
        status=status,
        message=explain(result) if failed else "",
        result={} if "censored" in result else result,
        delegate=delegated[1] if delegated else "",
    )


def parse(raw: Mapping[str, Any]) -> Event | None:
    """Return the event in ansible-runner's dictionary, or None for an event that is not used."""
    kind, data = str(raw.get("event")), raw.get("event_data") or {}
    match kind:
        case "playbook_on_play_start":
            return PlayStarted(str(data.get("name")))
        case "playbook_on_task_start":
            return TaskStarted(_task(data))
        case "runner_on_start":
            return HostStarted(_task(data), str(data.get("host")))
        case "runner_on_ok" | "runner_on_failed" | "runner_on_unreachable" | "runner_on_skipped":
            return _ended(raw, kind)
        case "runner_on_file_diff":
            return FileChanged(str(data.get("host")), _stdout(raw))
        case "playbook_on_stats":
            return Ended(data.get("ok") or {}, data.get("failures") or {}, data.get("dark") or {})
        case "verbose" | "error" | "warning" | "deprecated" | "system_warning":
            return Said(_stdout(raw))
    return None
