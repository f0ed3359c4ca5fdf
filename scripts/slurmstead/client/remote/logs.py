"""The output of tasks, also while they run."""

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
    """Return the run, the task and the output file that a request names.

    :raises WrongRequest: the run is an array and no task is named, or there is no such task
    """
    run, task = states.find_task(place, request["job"])
    spec = (store.read_json(place.run(run) / "request.json") or {}).get("tasks")
    if request.get("task") is not None:
        task = int(request["task"])
        states.check_task(place, run, task, str(task))
    if spec and task is None:
        raise WrongRequest(
            f"{run} is an array ({spec}), and no task was named", f"Name a task: stead logs {run} --task N"
        )
    directory = place.run(run) / "tasks" / str(task) if spec else place.run(run)
    return run, task or 0, directory / ("stderr" if request.get("stderr") else "stdout")


def copy(place: Store, request: Mapping[str, Any], out: BinaryIO) -> None:
    """Write an output file to `out`, starting at an offset; with `follow`, until the task has ended."""
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
    """Wait until the next read.

    :raises BrokenPipeError: the reader is gone; without this check, a task without output would hide that
    """
    watch = select.poll()
    watch.register(out, 0)
    if watch.poll(LOOK_SECONDS * 1000):
        raise BrokenPipeError


def _copy_from(path: pathlib.Path, position: int, out: BinaryIO) -> int:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < position:
                # Slurm restarted the task, and its output starts again.
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
    """Return at most the last `size` bytes of a file as text."""
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
    """Return a function that caches an answer for some seconds."""
    last = -seconds
    answer = False

    def ask() -> bool:
        nonlocal last, answer
        if time.monotonic() - last >= seconds:
            last, answer = time.monotonic(), function()
        return answer

    return ask
