"""Output of tasks, also while it is written."""

import os
import pathlib
import select
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from slurmstead.client.remote import states, store
from slurmstead.client.remote.errors import WrongRequest
from slurmstead.client.remote.store import Store

LOOK_SECONDS = 0.5
ASK_SECONDS = 5
BLOCK = 1 << 16


def file_of(place: Store, request: Mapping[str, Any]) -> tuple[str, int, pathlib.Path]:
    """Return the run, the task and the file that are meant.

    :raises WrongRequest: an array's task is not named, or there is no such task
    """
    run, task = states.find_task(place, request["job"])
    spec = (store.read_json(place.run(run) / "request.json") or {}).get("tasks")
    if request.get("task") is not None:
        task = int(request["task"])
        states.check_task(place, run, task, str(task))
    if spec and task is None:
        raise WrongRequest(f"{run} is an array ({spec})", f"Name a task: stead logs {run} --task 0")
    directory = place.run(run) / "tasks" / str(task) if spec else place.run(run)
    return run, task or 0, directory / ("stderr" if request.get("stderr") else "stdout")


def copy(place: Store, request: Mapping[str, Any], out: BinaryIO) -> None:
    """Write a file to `out` from an offset on; with `follow`, until the task has ended."""
    run, task, path = file_of(place, request)
    follow = bool(request.get("follow"))
    ended = _once_in(ASK_SECONDS, lambda: _ended(place, run, task))
    position = int(request.get("offset") or 0)
    while True:
        over = not follow or ended()
        position = _copy_from(path, position, out)
        if over:
            return
        _rest(out)


def _rest(out: BinaryIO) -> None:
    """Wait for the next look.

    :raises BrokenPipeError: nobody is there to read it: what a silent task prints would say so only when it does
    """
    watch = select.poll()
    watch.register(out, 0)
    if watch.poll(LOOK_SECONDS * 1000):
        raise BrokenPipeError


def _copy_from(path: pathlib.Path, position: int, out: BinaryIO) -> int:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < position:
                # Slurm started the task again, and it writes anew.
                position = 0
            file.seek(position)
            while block := file.read(BLOCK):
                out.write(block)
                position += len(block)
    except FileNotFoundError:
        return 0
    out.flush()
    return position


def end_of(path: pathlib.Path, size: int = 1 << 14) -> str:
    """Return the last bytes of a file as text, however long it is."""
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size).decode(errors="replace")


def _ended(place: Store, run: str, task: int) -> bool:
    result = store.read_json(place.run(run) / "done" / str(task))
    if result and not result.get("signalled"):
        return True
    states_of = {entry["task"]: entry["state"] for entry in states.look(place, [run])[0]["tasks"]}
    return states_of[task] not in ("pending", "running")


def _once_in(seconds: float, function: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that asks again only when its answer is old."""
    last = -seconds
    answer = False

    def ask() -> bool:
        nonlocal last, answer
        if time.monotonic() - last >= seconds:
            last, answer = time.monotonic(), function()
        return answer

    return ask
