"""How runs stand: from what their jobs left on the share, and from Slurm for those that have not ended."""

import contextlib
import os
import pathlib
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from slurmstead.client.remote import arrays, commands, slurm, store
from slurmstead.client.remote.errors import WrongRequest
from slurmstead.client.remote.ledger import Ledger
from slurmstead.client.remote.store import Store

ENDS = {
    "COMPLETED": "completed",
    "CANCELLED": "cancelled",
    "TIMEOUT": "timeout",
    "OUT_OF_MEMORY": "out of memory",
    "PREEMPTED": "preempted",
}
"""Slurm's words for an end, and ours; all others are failures."""

GRACE_SECONDS = 30
"""After a job's end, within which its result may still be on its way: an NFS client caches directories."""


def find(place: Store, name: str) -> str:
    """Return the run that somebody means: its id or the beginning of one, or the number of a job of Slurm.

    :raises WrongRequest: there is none, or there are several
    """
    names = every(place)
    if name in names:
        return name
    number = name.partition("_")[0]
    if number.isdigit():
        # Slurm counts from 1 again when it lost its state: the latest is meant.
        for run in reversed(names):
            if number in Ledger(place.run(run)).jobs.values():
                return run
    # A number is a job's: as the beginning of a date it would mean runs that nobody thought of.
    matching = [run for run in names if run.startswith(name) and not number.isdigit()]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise WrongRequest(f"{name} can be {', '.join(matching[-5:])}", "Write more of it.")
    raise WrongRequest(f"{name} is no run of yours below {place.root}", "`stead jobs` shows them.")


def find_task(place: Store, name: str) -> tuple[str, int | None]:
    """Return the run that somebody means, and its task if they name one as Slurm does: JOB_TASK.

    :raises WrongRequest: there is none
    """
    run = find(place, name)
    number, separator, index = name.partition("_")
    if name == run or not separator or not number.isdigit():
        return run, None
    ledger = Ledger(place.run(run))
    part = next(ledger.parts[chunk] for chunk, job in ledger.jobs.items() if job == number)
    task = part.offset + int(index) if part and index.isdigit() else -1
    check_task(place, run, task, name)
    return run, task


def check_task(place: Store, run: str, task: int, name: str) -> None:
    """Make sure that a run has a task.

    :param name: what it is called in the refusal
    :raises WrongRequest: it has not
    """
    if task not in _tasks(store.read_json(place.run(run) / "request.json") or {}):
        raise WrongRequest(f"{run} has no task {name}", "`stead jobs --json` shows them.")


def _tasks(request: Mapping[str, Any]) -> tuple[int, ...]:
    return arrays.parse(request["tasks"])[0] if request.get("tasks") else (0,)


def every(place: Store) -> list[str]:
    """Return all runs that became jobs, in the order in which they were submitted."""
    if not place.runs.is_dir():
        return []
    found = {}
    for run in place.runs.iterdir():
        with contextlib.suppress(OSError):
            found[run.name] = (run / "request.json").stat().st_mtime if (run / "ledger.json").exists() else 0
    return sorted((name for name, when in found.items() if when), key=lambda name: (found[name], name))


def look(place: Store, names: list[str]) -> list[dict[str, Any]]:
    """Return how runs stand; Slurm is asked only if one of them has not ended."""
    runs = [_Run(place.run(name)) for name in names]
    if any(run.open for run in runs):
        rows = commands.queue()
        for run in runs:
            # What ended between both looks has left its result in the meantime.
            run.read_results()
            run.merge([row for row in rows if row.run == run.path.name])
    return [run.summary() for run in runs]


def cancellation(run: pathlib.Path, task: int | None) -> pathlib.Path:
    """Return the file that says that a run, or a task of it, was cancelled."""
    return run / ("cancelled" if task is None else f"cancelled-{task}")


class _Run:
    """What is known of a run."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.request: Mapping[str, Any] = store.read_json(path / "request.json") or {}
        self.ledger = Ledger(path)
        self.tasks = _tasks(self.request)
        self.results: dict[int, Mapping[str, Any]] = {}
        self.signalled: dict[int, Mapping[str, Any]] = {}
        self.states: dict[int, dict[str, Any]] = {}
        self.read_results()

    @property
    def open(self) -> list[int]:
        """The tasks that have left no result, or one of which Slurm has yet to say that it is the last."""
        return [task for task in self.tasks if task not in self.results]

    def read_results(self) -> None:
        """Read the results that are new; how a task ended of which Slurm had to say it stands in ends.json."""
        ends = store.read_json(self.path / "ends.json") or {}
        with contextlib.suppress(OSError):
            for name in os.listdir(self.path / "done"):
                if name.isdigit() and int(name) not in self.results:
                    result = store.read_json(self.path / "done" / name)
                    if result:
                        last = name in ends or not result.get("signalled")
                        (self.results if last else self.signalled)[int(name)] = result
        for name, end in ends.items():
            self.results.setdefault(int(name), end)

    def merge(self, rows: list[slurm.Row]) -> None:
        """Take Slurm's word for the tasks without a result, and keep what it will soon have forgotten."""
        by_task: dict[int, slurm.Row] = {}
        owners = [self.ledger.owner(chunk) for chunk in range(len(self.ledger.parts))]
        for shown in rows:
            if shown.chunk < len(owners) and owners[shown.chunk] not in (None, shown.job):
                # A second job, which does nothing, or one of an earlier run of this name whose directory was removed.
                continue
            part = self.ledger.parts[shown.chunk] if shown.chunk < len(self.ledger.parts) else None
            if part is None:
                by_task[0] = shown
            elif shown.number is not None:
                by_task[part.offset + shown.number] = shown
            else:
                # What was cancelled before it began is one row for all of an array that have none of their own.
                for index in arrays.parse(part.indices)[0]:
                    by_task.setdefault(part.offset + index, shown)
        ends: dict[int, dict[str, Any]] = {}
        for task in self.open:
            row = by_task.get(task)
            if task in self.signalled and (row is None or row.ended):
                ends[task] = end_of_signalled(self.signalled[task], row)
            elif row is None:
                reason = "Slurm does not know the job any more, and it left no result"
                if any(cancellation(self.path, which).exists() for which in (None, task)):
                    ends[task] = {"state": "cancelled", "reason": "cancelled before it began"}
                elif self.ledger.complete:
                    ends[task] = {"state": "lost", "reason": reason}
            elif row.ended and row.state in ("COMPLETED", "FAILED") and time.time() - row.end < GRACE_SECONDS:
                self.states[task] = {"state": "running", "reason": "ending", "node": row.node}
            elif row.ended:
                reason = f"Slurm says {row.state}" + (f" ({row.reason})" if row.reason not in ("", "None") else "")
                state = ENDS.get(row.state, "failed")
                # Without a result it cannot have done what it was to do.
                ends[task] = {"state": "failed" if state == "completed" else state, "reason": reason, "node": row.node}
            else:
                running = row.state in slurm.RUNNING
                self.states[task] = {
                    "state": "running" if running else "pending",
                    "reason": "" if row.reason == "None" else row.reason,
                    "node": row.node,
                }
        if ends:
            self.results.update(ends)
            with contextlib.suppress(OSError):
                kept = store.read_json(self.path / "ends.json") or {}
                store.write_json(self.path / "ends.json", {**kept, **ends})

    def summary(self) -> dict[str, Any]:
        """Return the run as programs read it; times in seconds since the epoch, memory in bytes."""
        known = {task: self.results.get(task) or self.states.get(task) or {"state": "pending"} for task in self.tasks}
        counts = Counter(str(state["state"]) for state in known.values())
        values = list(known.values())
        ended = [value["end"] for value in values if value.get("end")]
        begun = [value["start"] for value in values if value.get("start")]
        state = overall(counts)
        worst = next((value for value in values if value["state"] == state or state == "failed" and failed(value)), {})
        return {
            "id": self.path.name,
            "name": self.request.get("name", ""),
            "jobs": list(self.ledger.jobs.values()),
            "array": self.request.get("array"),
            "state": state,
            "counts": dict(counts),
            "submitted": self.request.get("submitted"),
            "start": min(begun, default=None),
            "end": max(ended, default=None) if state not in ("pending", "running") else None,
            "nodes": sorted({node for value in values if (node := value.get("node"))}),
            "exit_code": worst.get("exit_code"),
            "reason": worst.get("reason", ""),
            "cpu_seconds": round(sum(value.get("cpu_seconds") or 0 for value in values), 3),
            "memory_bytes": max((value.get("memory_bytes") or 0 for value in values), default=0),
            "directory": str(self.path),
            "tasks": [
                {"task": task, **{key: value[key] for key in SHOWN if key in value}} for task, value in known.items()
            ],
        }


def end_of_signalled(result: Mapping[str, Any], row: slurm.Row | None) -> dict[str, Any]:
    """Return how a task ended that Slurm ended: to the task all but its time limit looked like a cancellation."""
    state = ENDS.get(row.state) if row else None
    if row and state in ("timeout", "preempted") and result["state"] == "cancelled":
        return {**result, "state": state, "reason": f"Slurm says {row.state}"}
    return dict(result)


SHOWN = ("state", "node", "exit_code", "signal", "reason", "start", "end", "job")
"""What a summary says of each task."""


def failed(value: Mapping[str, Any]) -> bool:
    """Whether a task ended badly."""
    return value["state"] not in ("pending", "running", "completed")


def overall(counts: Mapping[str, int]) -> str:
    """Return the state of a run from those of its tasks."""
    if counts.get("running") or (counts.get("pending") and len(counts) > 1):
        return "running"
    if counts.get("pending"):
        return "pending"
    if set(counts) == {"completed"}:
        return "completed"
    kinds = set(counts) - {"completed"}
    return kinds.pop() if len(kinds) == 1 else "failed"
