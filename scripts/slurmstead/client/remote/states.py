"""The states of runs: from the results of their jobs on the share, and from Slurm for jobs that have not ended."""

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
"""Our names for Slurm's final states; any other state is a failure."""

GRACE_SECONDS = 30
"""Seconds after a job's end in which its result may still be invisible here: an NFS client caches directories."""


def find(place: Store, name: str) -> str:
    """Return the ID of a run, given its ID, the beginning of it, or the number of its job in Slurm.

    :raises WrongRequest: no run matches, or several do
    """
    if not name:
        raise WrongRequest("the name of a run is empty", "`stead jobs` lists your runs.")
    names = every(place)
    if name in names:
        return name
    number = name.partition("_")[0]
    if number.isdigit():
        # Slurm counts from 1 again after it lost its state: the newest run with this number is meant.
        for run in reversed(names):
            if number in Ledger(place.run(run)).jobs.values():
                return run
    # A number always means a job: as the beginning of a date it would match unrelated runs.
    matching = [run for run in names if run.startswith(name) and not number.isdigit()]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise WrongRequest(
            f"{name} matches several runs: {', '.join(matching[-5:])}", "Give more characters of its ID."
        )
    raise WrongRequest(f"there is no run {name} in {place.root}", "`stead jobs` lists your runs.")


def find_task(place: Store, name: str) -> tuple[str, int | None]:
    """Return the ID of a run, and its task if `name` has Slurm's form JOB_TASK.

    :raises WrongRequest: there is no such run or task
    """
    run = find(place, name)
    number, separator, index = name.partition("_")
    if name == run or not separator or not number.isdecimal():
        return run, None
    ledger = Ledger(place.run(run))
    part = next(ledger.parts[chunk] for chunk, job in ledger.jobs.items() if job == number)
    task = part.offset + int(index) if part and index.isdecimal() else -1
    check_task(place, run, task, name)
    return run, task


def check_task(place: Store, run: str, task: int, name: str) -> None:
    """Check that a run has a task.

    :param name: the task's name in the error message
    :raises WrongRequest: the run does not have it
    """
    if task not in _tasks(store.read_json(place.run(run) / "request.json") or {}):
        raise WrongRequest(f"{run} has no task {name}", "`stead jobs --json` lists its tasks.")


def _tasks(request: Mapping[str, Any]) -> tuple[int, ...]:
    return arrays.parse(request["tasks"])[0] if request.get("tasks") else (0,)


def every(place: Store) -> list[str]:
    """Return the IDs of all runs that have jobs, in order of submission."""
    if not place.runs.is_dir():
        return []
    found = {}
    for run in place.runs.iterdir():
        with contextlib.suppress(OSError):
            if store.ID.fullmatch(run.name) and (run / "ledger.json").exists():
                found[run.name] = (run / "request.json").stat().st_mtime
    return sorted(found, key=lambda name: (found[name], name))


def look(place: Store, names: list[str]) -> list[dict[str, Any]]:
    """Return the states of runs; Slurm is asked only if a run has not ended."""
    runs = [_Run(place.run(name)) for name in names]
    if any(run.open for run in runs):
        rows = commands.queue()
        for run in runs:
            # Read the results again: a job may have ended before Slurm was asked.
            run.read_results()
            run.merge([row for row in rows if row.run == run.path.name])
    return [run.summary() for run in runs]


def cancellation(run: pathlib.Path, task: int | None) -> pathlib.Path:
    """Return the file that marks a run, or one of its tasks, as cancelled."""
    return run / ("cancelled" if task is None else f"cancelled-{task}")


def withdrawal(run: pathlib.Path) -> pathlib.Path:
    """Return the file that marks a run that Slurm refused and that is being removed."""
    return run / "withdrawn"


def may_not_start(run: pathlib.Path, task: int | None) -> bool:
    """Return whether a task was cancelled, or its run withdrawn, before the task began."""
    marks = (withdrawal(run), cancellation(run, None), cancellation(run, task))
    return any(mark.exists() for mark in marks)


class _Run:
    """The collected state of a run."""

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
        """The tasks without a result, or with one that Slurm has yet to confirm as final."""
        return [task for task in self.tasks if task not in self.results]

    def read_results(self) -> None:
        """Read new results; ends.json has the ends that only Slurm knew."""
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
        """Take the state of tasks without a result from Slurm, and save what Slurm will soon forget."""
        by_task: dict[int, slurm.Row] = {}
        owners = [self.ledger.owner(chunk) for chunk in range(len(self.ledger.parts))]
        for shown in rows:
            if shown.chunk < len(owners) and owners[shown.chunk] not in (None, shown.job):
                # A duplicate job, which does nothing, or a job of an earlier, removed run with the same ID.
                continue
            part = self.ledger.parts[shown.chunk] if shown.chunk < len(self.ledger.parts) else None
            if part is None:
                by_task[0] = shown
            elif shown.number is not None:
                by_task[part.offset + shown.number] = shown
            else:
                # Tasks that were cancelled before they began share one row for the whole array.
                for index in arrays.parse(part.indices)[0]:
                    by_task.setdefault(part.offset + index, shown)
        ends: dict[int, dict[str, Any]] = {}
        for task in self.open:
            row = by_task.get(task)
            if task in self.signalled and (row is None or row.ended):
                ends[task] = end_of_signalled(self.signalled[task], row)
            elif row is None:
                reason = "Slurm no longer knows the job, and it left no result"
                if any(cancellation(self.path, which).exists() for which in (None, task)):
                    ends[task] = {"state": "cancelled", "reason": "cancelled before it started"}
                elif self.ledger.complete:
                    ends[task] = {"state": "lost", "reason": reason}
            elif row.ended and row.state in ("COMPLETED", "FAILED") and time.time() - row.end < GRACE_SECONDS:
                self.states[task] = {"state": "running", "reason": "ending", "node": row.node}
            elif row.ended:
                reason = f"Slurm reports {row.state}" + (f" ({row.reason})" if row.reason not in ("", "None") else "")
                state = ENDS.get(row.state, "failed")
                # A task without a result cannot have succeeded.
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
        """Return the run's fields for JSON; times in seconds since the epoch, memory in bytes."""
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
    """Return the final state of a signalled task; the task itself can tell only its time limit from a cancellation."""
    state = ENDS.get(row.state) if row else None
    if row and state in ("timeout", "preempted") and result["state"] == "cancelled":
        return {**result, "state": state, "reason": f"Slurm reports {row.state}"}
    return dict(result)


SHOWN = ("state", "node", "exit_code", "signal", "reason", "start", "end", "job")
"""The fields of each task in a summary."""


def failed(value: Mapping[str, Any]) -> bool:
    """Whether a task ended without success."""
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
