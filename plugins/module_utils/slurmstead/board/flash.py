# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""An image is written to a module by the BMC of a Turing Pi 2.

The protocol is that of bmcd 2.x (turing-machines/bmcd at a15e8fc: src/api/legacy.rs, src/streaming_data_service.rs,
src/app/upgrade_worker.rs) as tpi speaks it (turing-machines/tpi, src/legacy_handler.rs). bmcd switches the module off,
starts it as a USB disk, writes, compares a checksum of what it reads back, and switches the module off, also after a
failure. A request cancels another transfer, so the state is asked before. bmcd counts slots from 0 here, and drops a
transfer whose upload does not begin within 10 seconds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from ansible.module_utils.slurmstead.power import web
from ansible.module_utils.slurmstead.power.model import Machine, PowerError, RefusedError
from ansible.module_utils.slurmstead.power.turing_pi import TuringPi

CHUNK = 2**17
SECONDS = 120.0
"""Time limit of one step of an upload: it waits while the module starts as a USB disk."""

STUCK = 300.0
"""Seconds without progress, or without an answer, after which bmcd counts as hanging."""

PAUSE = 1.0

Tell = Callable[[str], None]


class FlashError(Exception):
    """An image was not written; the message says why, and what state the module is in."""


def flash(machine: Machine, image: pathlib.Path, tell: Tell) -> None:
    """Write an image to a module and switch it on.

    :param tell: is given a line about the progress now and then
    :raises FlashError: it was not written, or not verified, or the module is off
    """
    try:
        state = _state(machine)
        if isinstance(state, dict) and "Transferring" in state:
            raise FlashError(f"{machine.address} is writing another image ({state['Transferring']['process_name']})")
        tell("computing the checksum of the image")
        handle, size = _begin(machine, image)
    except PowerError as error:
        raise FlashError(f"{error}; nothing was written") from None
    try:
        _upload(machine, image, handle, size, tell)
        _watch(machine, handle, tell)
    except PowerError as error:
        raise FlashError(
            f"{error}. The disk of the module is partly written, and bmcd switches the module off; the same command "
            "begins again"
        ) from None
    try:
        TuringPi(machine).on(stale=True)
    except PowerError as error:
        raise FlashError(f"the image is written and verified, but the module was not switched on: {error}") from None


def _state(machine: Machine) -> Any:
    return web.request(machine, "/api/bmc?opt=get&type=flash", headers=web.basic(machine))


def _reason(state: Any) -> str:
    return f"bmcd reports: {state['Error']}" if isinstance(state, dict) and "Error" in state else ""


def _begin(machine: Machine, image: pathlib.Path) -> tuple[int, int]:
    """Announce an image; return the handle of its transfer, and its size."""
    digest, size = hashlib.sha256(), 0
    with image.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
            size += len(block)
    # By its name bmcd would unpack a file of xz.
    words = f"file=image.img&length={size}&node={machine.slot - 1}&sha256={digest.hexdigest()}"
    answer = web.request(machine, f"/api/bmc?opt=set&type=flash&{words}", headers=web.basic(machine))
    if not isinstance(answer, dict) or not isinstance(answer.get("handle"), int):
        raise PowerError(f"{machine.address} does not answer as bmcd 2.x does")
    return answer["handle"], size


def _upload(machine: Machine, image: pathlib.Path, handle: int, size: int, tell: Tell) -> None:
    """Send an image as one part of a form (RFC 7578); bmcd reads it no faster than it writes."""
    mark = uuid.uuid4().hex
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="image.img"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    tail = f"\r\n--{mark}--\r\n".encode()

    def parts() -> Iterator[bytes]:
        yield head
        sent = 0
        with image.open("rb") as file:
            while sent < size and (block := file.read(CHUNK)):
                yield block
                sent += len(block)
                tell(f"writing: {_share(sent, size)}")
        yield tail

    form = web.Stream(parts(), len(head) + size + len(tail), f"multipart/form-data; boundary={mark}")
    patient = dataclasses.replace(machine, seconds=SECONDS)
    try:
        web.request(patient, f"/api/bmc/upload/{handle}", form, web.basic(machine))
    except RefusedError:
        raise
    except PowerError as error:
        # bmcd knows why it stopped reading.
        raise PowerError(_reason(_state(machine)) or str(error)) from None


def _watch(machine: Machine, handle: int, tell: Tell) -> None:
    """Wait until bmcd has written and verified what it was sent."""
    last: Any = None
    moved = time.monotonic()
    while True:
        try:
            state = _state(machine)
        except RefusedError:
            raise
        except PowerError:
            state = last
            if time.monotonic() - moved > STUCK:
                raise
        if reason := _reason(state):
            raise PowerError(reason)
        if isinstance(state, dict) and "Done" in state:
            return
        transfer = state.get("Transferring") if isinstance(state, dict) else None
        if transfer is None and state is not None or transfer and transfer["id"] != handle:
            raise PowerError(f"{machine.address} has dropped the transfer: bmcd was restarted, or has another one")
        if state != last:
            last, moved = state, time.monotonic()
        elif time.monotonic() - moved > STUCK:
            raise PowerError(f"{machine.address} reports no progress for {STUCK:.0f} s")
        if transfer:
            # All of it was sent, and bmcd counts from 0 again when it reads back.
            tell(f"verifying: {_share(transfer['bytes_written'], transfer['size'])}")
        time.sleep(PAUSE)


def _share(done: int, size: int) -> str:
    return f"{100 * done // max(size, 1)} % of {size / 1e6:.0f} MB"
