"""The head node's end of the connection: reads one request from standard input and answers on standard output."""

import contextlib
import errno
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from slurmstead.client.remote import commands, hashing, logs, states, store, submission
from slurmstead.client.remote.errors import Refusal, WrongRequest
from slurmstead.client.remote.ledger import Ledger
from slurmstead.client.remote.store import Store

Request = Mapping[str, Any]

HASH_SECONDS = 60
"""How long a request may compute checksums: a client waits for an answer for 600 s."""


def _jobs(place: Store, request: Request) -> dict[str, Any]:
    names = [states.find(place, name) for name in request["jobs"]] if request.get("jobs") else states.every(place)
    if request.get("latest"):
        names = names[-int(request["latest"]) :]
    return {"jobs": states.look(place, names)}


def _cancel(place: Store, request: Request) -> dict[str, Any]:
    """Cancel runs, and tasks named as JOB_TASK."""
    found = [states.find_task(place, name) for name in request["jobs"]]
    commands.ping()
    names, cancelled = [], []
    for name, (run, task) in zip(request["jobs"], found, strict=True):
        names.append(run if task is None else name)
        tasks = states.look(place, [run])[0]["tasks"]
        if any(entry["state"] in ("pending", "running") and task in (None, entry["task"]) for entry in tasks):
            _end(place, run, task)
            cancelled.append(names[-1])
    return {"runs": names, "cancelled": cancelled}


def _end(place: Store, run: str, task: int | None) -> None:
    ledger = Ledger(place.run(run))
    if not ledger.complete:
        with place.lock():
            ledger = Ledger(place.run(run))
            if not ledger.parts:
                raise WrongRequest(
                    f"{ledger.path} cannot be read, so the jobs of {run} are unknown",
                    "Repeat the command that submits it, then cancel it.",
                )
            ledger.find(commands.queue(), run)
            if not ledger.jobs:
                # A task has a name only if its job is known, so the whole run is meant.
                submission.find_lost(place.run(run), ledger)
            if not ledger.jobs:
                store.write(states.cancellation(place.run(run), None), b"")
                return
    # Also on a full disk: only a job that never began needs the mark, because Slurm forgets such a job at once.
    with contextlib.suppress(OSError):
        store.write(states.cancellation(place.run(run), task), b"")
    commands.run(["scancel", *ledger.slurm_names(task)])


def _results(place: Store, request: Request) -> dict[str, Any]:
    """Return the files of a run's ended tasks, or of one task; paths are relative to the run's directory.

    While checksums are missing, return how many bytes have one (`hashed`) instead: the same request continues.
    """
    run, only = states.find_task(place, request["job"])
    directory = place.run(run)
    summary = states.look(place, [run])[0]
    if only is not None:
        tasks = [task for task in summary["tasks"] if task["task"] == only]
        summary.update(tasks=tasks, state=tasks[0]["state"], counts={tasks[0]["state"]: 1})
    files = []
    hasher = hashing.Hasher(HASH_SECONDS)
    for task in summary["tasks"]:
        if task["state"] in ("pending", "running"):
            continue
        below = f"tasks/{task['task']}" if summary["array"] else ""
        entries = store.read_json(directory / below / "manifest.json")
        if entries is None and (directory / below).is_dir():
            # The node failed before it could write a manifest.
            entries = hasher.entries(directory / below, directory / "input")
        files += [{**entry, "path": os.path.join(below, entry["path"])} for entry in entries or []]
    if not hasher.complete:
        return {"run": run, "size": hasher.size, "hashed": hasher.hashed}
    return {"run": run, "task": only, "directory": str(directory), "summary": summary, "files": files}


def _tail(place: Store, request: Request) -> dict[str, Any]:
    """Return the last lines of a task's standard error, or of Slurm's log of the job if it is empty or missing."""
    run = states.find(place, request["job"])
    _, _, path = logs.file_of(place, {"job": run, "task": request.get("task"), "stderr": True})
    candidates = [path, *sorted((place.run(run) / "log").glob("*.out"), key=lambda file: file.stat().st_mtime)[-1:]]
    for candidate in candidates:
        if candidate.is_file() and (text := logs.end_of(candidate).strip()):
            return {"text": "\n".join(text.splitlines()[-int(request.get("lines") or 20) :])}
    return {"text": ""}


def _rerun(place: Store, request: Request, program: bytes) -> dict[str, Any]:
    source, task = states.find_task(place, request["job"])
    before = store.read_json(place.run(source) / "request.json")
    order = {**before, "id": request["id"], "after": [], "again_of": source}
    if task is not None:
        order.update(tasks=str(task), array=str(task))
    begun = submission.begin(place, order)
    again = bool(begun["jobs"])
    if not again:
        submission.copy_input(place, {"id": request["id"], "source": source})
        begun.update(submission.submit(place, {**order, "token": begun["token"]}, program))
    return {**begun, "id": request["id"], "source": source, "again": again}


def answer(place: Store, request: Request, program: bytes) -> dict[str, Any]:
    """Return the answer to any request except `log`, which is answered with a stream."""
    actions: dict[str, Callable[[Store, Request], dict[str, Any]]] = {
        "begin": submission.begin,
        "submit": lambda place, request: submission.submit(place, request, program),
        "discard": submission.discard,
        "rerun": lambda place, request: _rerun(place, request, program),
        "jobs": _jobs,
        "cancel": _cancel,
        "results": _results,
        "tail": _tail,
    }
    return actions[request["action"]](place, request)


def serve(request: Request, program: bytes, out: BinaryIO) -> int:
    """Answer a request on `out`: one line of JSON; for `log` the raw bytes, with refusals on standard error.

    :returns: the exit code, 0 or 1
    """
    said: dict[str, Any]
    try:
        place = store.open_store(request.get("directory"))
        if request["action"] == "log":
            logs.copy(place, request, out)
            return 0
        said = answer(place, request, program)
    except BrokenPipeError:
        return 1
    except Refusal as refusal:
        said = {"error": {"kind": refusal.kind, "text": str(refusal), "hint": refusal.hint}}
    except OSError as error:
        said = {"error": _os_error(error, request["action"])}
    except Exception:
        said = {"error": {"kind": "task", "text": traceback.format_exc(), "hint": ""}}
    stream = sys.stderr.buffer if request["action"] == "log" else out
    stream.write(json.dumps(said).encode() + b"\n")
    stream.flush()
    return 1 if "error" in said else 0


def _os_error(error: OSError, action: str) -> dict[str, str]:
    where = f": {error.filename}" if error.filename else ""
    host = os.uname().nodename
    if error.errno in store.FULL:
        text = f"the disk is full on {host} ({store.FULL[error.errno]}){where}"
        nothing = "Nothing was submitted. " if action in ("begin", "submit", "rerun") else ""
        hint = f"{nothing}Free some space there, then run the command again."
        return {"kind": "task", "text": text, "hint": hint}
    hint = "Check there that the share is mounted." if error.errno in (errno.ESTALE, errno.EIO) else ""
    return {"kind": "task", "text": f"{error.strerror} on {host}{where}", "hint": hint}
