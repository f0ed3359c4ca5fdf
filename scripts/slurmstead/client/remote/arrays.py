"""Arrays: from what a person writes to the tasks of a run, and to the arrays that Slurm accepts."""

import re
from typing import NamedTuple

from slurmstead.client.remote.errors import WrongRequest

PART = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")
HINT = "Write it as for sbatch: 0-99, 1,5,9, 0-99:2, and %10 behind it for at most ten at a time."

MAX_TASKS = 1_000_000


class Chunk(NamedTuple):
    """Tasks that are one job of Slurm: task n of the run is index n - offset of the array `indices`."""

    offset: int
    indices: str


def parse(text: str) -> tuple[tuple[int, ...], int | None]:
    """Return the tasks of an array in ascending order, and how many of them may run at a time.

    >>> parse("0-6:3,1%2")
    ((0, 1, 3, 6), 2)

    :raises WrongRequest: it is none, or has too many tasks
    """
    listed, percent, limit = text.partition("%")
    if percent and not (limit.isdigit() and int(limit)):
        raise WrongRequest(f"expected a number behind % in the array {text!r}", HINT)
    tasks: set[int] = set()
    for part in listed.split(","):
        match = PART.fullmatch(part)
        first, last, step = (match[1], match[2] or match[1], match[3] or 1) if match else (0, 0, 0)
        first, last, step = int(first), int(last), int(step)
        if not match or last < first or step < 1 or last - first > MAX_TASKS:
            raise WrongRequest(f"{text!r} is not an array", HINT)
        tasks.update(range(first, last + 1, step))
    if len(tasks) > MAX_TASKS:
        raise WrongRequest(f"the array {text!r} has {len(tasks)} tasks, more than {MAX_TASKS}", "Split it.")
    return tuple(sorted(tasks)), int(limit) if percent else None


def text(tasks: tuple[int, ...]) -> str:
    """Return tasks in ascending order as Slurm writes them.

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
    """Return the arrays that hold all tasks; an index must be below MaxArraySize (slurm.conf(5)).

    >>> chunks((0, 1, 7, 12), 6)
    [Chunk(offset=0, indices='0-1'), Chunk(offset=7, indices='0,5')]
    """
    found: list[tuple[int, list[int]]] = []
    for task in tasks:
        # Slurm's own numbers are kept as long as they fit: what a person sees in squeue is then what they wrote.
        if not found or task - found[-1][0] >= max_array_size:
            found.append((0 if not found and task < max_array_size else task, []))
        found[-1][1].append(task - found[-1][0])
    return [Chunk(offset, text(tuple(indices))) for offset, indices in found]
