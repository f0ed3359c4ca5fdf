# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The BMC of a Turing Pi 2 (bmcd 2.x, turing-machines/bmcd, src/api/legacy.rs).

Off cuts the supply, so the system must be shut down before. bmcd answers with the bit that it stored, not with a
measurement: after a shutdown from inside, the bit is still 1, and setting it to 1 again does nothing.
Five wrong passwords ban this computer for up to 1024 minutes, so nothing repeats a refused one.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.slurmstead.power import web
from ansible.module_utils.slurmstead.power.model import Machine, PowerError


class TuringPi:
    """The node in slot `slot`, from 1 to 4."""

    orderly = False

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.key = f"node{machine.slot}"

    def _ask(self, words: str) -> Any:
        answer = web.request(self.machine, f"/api/bmc?{words}", headers=web.basic(self.machine))
        try:
            return answer["response"][0]["result"]
        except (KeyError, IndexError, TypeError):
            raise PowerError(f"{self.machine.address} does not answer as bmcd 2.x does") from None

    def _set(self, bit: int) -> None:
        said = self._ask(f"opt=set&type=power&{self.key}={bit}")
        if said != "ok":
            raise PowerError(f"{self.machine.address} answers to {self.key}={bit}: {said}")

    def on(self, stale: bool = False) -> None:
        """Switch on. A board that shut itself down has bit 1 and needs an edge."""
        if self.is_on():
            if not stale:
                return
            self._set(0)
        self._set(1)

    def off(self) -> None:
        """Cut."""
        self._set(0)

    def shut_down(self) -> None:
        """Not possible."""
        raise PowerError("a Turing Pi cannot shut down a system; ssh can")

    def is_on(self) -> bool | None:
        """Return bmcd's bit."""
        found = self._ask("opt=get&type=power")
        bits = found[0] if isinstance(found, list) and found else found
        try:
            return str(bits[self.key]) == "1"
        except (KeyError, TypeError):
            raise PowerError(f"{self.machine.address} does not say whether {self.key} is on") from None
