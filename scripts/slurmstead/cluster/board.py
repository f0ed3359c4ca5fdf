"""Modules on a board: the image with the account inside, and how it gets onto a module."""

import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from slurmstead import rooms
from slurmstead.cluster import operations
from slurmstead.errors import CheckFailed, UsageError

SEE = "See docs/flash.md."


def prepare(
    out: Console, messages: Console, inventory: pathlib.Path, source: pathlib.Path, target: pathlib.Path, *, plain: bool
) -> str:
    """Make a copy of an image with the account inside; return the name of its system.

    :raises SteadError: it was not made
    """
    image = rooms.module("board.image")
    try:
        image.check(source, target)
    except image.ImageError as error:
        raise UsageError(f"{error}; nothing was written", SEE) from None
    paths = {"image_source": str(source.absolute()), "image_target": str(target.absolute())}
    # An interrupted run leaves no copy, because this process removes it.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.absolute().parent) as work:
        result = operations.run(
            *(out, messages, "prepare-image.yml", inventory), extra_vars={**paths, "image_work": work}, plain=plain
        )
    if found := result.answer("board_image", "system"):
        return str(found["system"])
    raise CheckFailed(f"{inventory} has no control node", "Add it to the group control.")


def check(name: str, image: pathlib.Path, inventory: pathlib.Path, listed: Mapping[str, Any]) -> None:
    """Check that a node is a module that can be flashed, and the image one of a disk.

    :param listed: `ansible-inventory --list`
    :raises UsageError: it is not
    """
    own = listed.get("_meta", {}).get("hostvars", {}).get(name)
    if own is None:
        raise UsageError(f"{name} is not in {inventory}", SEE)
    if own.get("power_method") != "turing_pi":
        raise UsageError(f"{name} does not have power_method: turing_pi; no other BMC can write a disk", SEE)
    room = rooms.module("board.image")
    try:
        found = room.look(image)
    except room.ImageError as error:
        raise UsageError(f"{error}; nothing was written", SEE) from None
    if found.packed:
        raise UsageError(f"{image} is packed", f"Make an image from it: scripts/stead image board {image} -o IMAGE")


def flash(
    out: Console,
    messages: Console,
    inventory: pathlib.Path,
    name: str,
    image: pathlib.Path,
    control: str,
    *,
    deadline: int,
    plain: bool,
) -> str:
    """Write an image to a module and switch it on; return the fingerprint of the new host key.

    :param control: the host that reaches the BMC; empty: this computer
    :raises SteadError: it was not written, or its system does not answer
    """
    with tempfile.NamedTemporaryFile("w", prefix="stead-") as note:
        result = operations.run(
            *(out, messages, "flash-board.yml", inventory),
            extra_vars={
                **{"flashed_node": name, "flashed_image": str(image.absolute()), "flashed_control": control},
                **{"flashed_progress": note.name, "flashed_deadline": str(deadline)},
            },
            plain=plain,
            note=pathlib.Path(note.name),
        )
    return str(result.answer("host_key", "host_key").get("host_key", ""))


def lines(name: str, key: str, is_worker: bool) -> Iterator[str]:
    """Yield what the operator should know and write down."""
    yield f"{name} runs the image. It presents this host key; compare it with its console, then add the line to it:"
    yield f"      os_host_key: {key}"
    yield f"Then run: scripts/stead {f'add-node {name}' if is_worker else 'up'}"
