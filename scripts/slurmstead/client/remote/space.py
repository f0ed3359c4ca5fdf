"""The space that the tasks of an array need on the share."""

import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

from slurmstead.client.remote import arrays, manifest
from slurmstead.client.remote.errors import Refusal


def size(number: float) -> str:
    """Return a size in readable units.

    >>> size(900), size(1.5 * 2**20)
    ('900 B', '1.5 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def check(given: pathlib.Path, request: Mapping[str, Any]) -> None:
    """Check that each task of an array can have its copy of the input, without the paths of `data`.

    :raises Refusal: the copies need more than is free on the share
    """
    if not request.get("tasks"):
        return
    count = len(arrays.parse(request["tasks"])[0])
    shared = tuple(f"{path}/" for path in request.get("data") or ())
    copied = [path for path in manifest.walk(str(given)) if not f"{path}/".startswith(shared)]
    needed = count * sum(os.lstat(given / path).st_size for path in copied)
    free = shutil.disk_usage(given).free
    if needed > free:
        raise Refusal(
            f"{count} tasks need {size(needed)} for copies of their input, but only {size(free)} are free on the share",
            "List files that the program only reads in `data` (--data PATH): they are not copied. Or free some space.",
        )
