"""Arrays: the user's notation, the tasks of a run, and the arrays that Slurm accepts."""

import re
from typing import NamedTuple

from slurmstead.client.remote.errors import WrongRequest

PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
HINT = "Use sbatch's notation: 0-99, 1,5,9 or 0-99:2; append %10 to run at most ten at a time."

MAX_TASKS = 1_000_000


class Chunk(NamedTuple):
    """Tasks of one Slurm job: task n of the run is index n - offset of the array `indices`."""

    offset: int
    indices: str


def parse(text: str) -> tuple[tuple[int, ...], int | None]:
    """Return the tasks of an array in ascending order, and the limit of simultaneous tasks or None.

    >>> parse("0-6:3,1%2")
    ((0, 1, 3, 6), 2)

    :raises WrongRequest: the text is not an array, or has too many tasks
    """
    listed, percent, limit = text.partition("%")
    if percent and not (limit.isdecimal() and int(limit)):
        raise WrongRequest(f"expected a number above 0 after % in the array {text!r}", HINT)
    tasks: set[int] = set()
    for part in listed.split(","):
        match = PART.fullmatch(part)
        first, last, step = (match[1], match[2] or match[1], match[3] or 1) if match else (0, 0, 0)
        first, last, step = int(first), int(last), int(step)
        if not match or last < first or step < 1 or last - first > MAX_TASKS:
            raise WrongRequest(f"{text!r} is not an array", HINT)
        tasks.update(range(first, last + 1, step))
    if len(tasks) > MAX_TASKS:
        raise WrongRequest(
            f"the array {text!r} has {len(tasks)} tasks, more than {MAX_TASKS}", "Split it into several."
        )
    return tuple(sorted(tasks)), int(limit) if percent else None


def text(tasks: tuple[int, ...]) -> str:
    """Return ascending task numbers in Slurm's notation.

    >>> text((0, 1, 2, 5, 7, 8))
    '0-2,5,7-8'
    """
    parts: list[list[int]] = []
    for task in tasks:
        if parts and parts[-1][1] == task - 1:
            parts[-1][1] = task
        else:
            parts.append([task, task])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def chunks(tasks: tuple[int, ...], max_array_size: int) -> list[Chunk]:
    """Split tasks into arrays that Slurm accepts: each index must be below MaxArraySize (slurm.conf(5)).

    >>> chunks((0, 1, 7, 12), 6)
    [Chunk(offset=0, indices='0-1'), Chunk(offset=7, indices='0,5')]
    """
    found: list[tuple[int, list[int]]] = []
    for task in tasks:
        # Indices equal task numbers while they fit, so that squeue shows the numbers that the user wrote.
        if not found or task - found[-1][0] >= max_array_size:
            found.append((0 if not found and task < max_array_size else task, []))
        found[-1][1].append(task - found[-1][0])
    return [Chunk(offset, text(tuple(indices))) for offset, indices in found]
