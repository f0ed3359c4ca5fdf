# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Plugs that switch the supply: Tasmota, and both generations of Shelly.

Their machines must start when the supply returns (the setting of the BIOS that is often named "restore on AC").
"""

from __future__ import annotations

import json
import time
import urllib.parse
from typing import Any

from ansible.module_utils.slurmstead.power import web
from ansible.module_utils.slurmstead.power.model import Machine, PowerError, RefusedError

KINDS = ("tasmota", "shelly_1", "shelly_2")

DISCHARGE = 10.0
"""Seconds without mains after which a machine takes its return for a new start: supplies bridge shorter ones."""


class Plug:
    """A relay of a plug; its state is that of the supply, not of the machine."""

    orderly = False

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._ask = {"tasmota": self._tasmota, "shelly_1": self._shelly_1, "shelly_2": self._shelly_2}[machine.plug]

    def _tasmota(self, state: bool | None) -> bool:
        name = f"Power{self.machine.slot}"
        words = f"{name} {'On' if state else 'Off'}" if state is not None else name
        login = {"user": self.machine.user or "admin", "password": self.machine.password}
        secret = f"&{urllib.parse.urlencode(login)}" if self.machine.password else ""
        path = f"/cm?cmnd={urllib.parse.quote(words)}"
        answer = web.members(self.machine, path, web.request(self.machine, path, tls=False, secret=secret))
        if "WARNING" in answer:
            # Tasmota answers a wrong password with 200 and {"WARNING": "Need user=<username>&password=<password>"}.
            raise RefusedError(f"{self.machine.address} refuses the credentials of {self.machine.name}")
        said = answer.get(name.upper(), answer.get("POWER") if self.machine.slot == 1 else None)
        return _known(self.machine, said, {"ON": True, "OFF": False})

    def _shelly_1(self, state: bool | None) -> bool:
        turn = "" if state is None else f"?turn={'on' if state else 'off'}"
        headers = web.basic(self.machine) if self.machine.password else {}
        path = f"/relay/{self.machine.slot - 1}{turn}"
        answer = web.members(self.machine, path, web.request(self.machine, path, headers=headers, tls=False))
        return _known(self.machine, answer.get("ison"), {True: True, False: False})

    def _shelly_2(self, state: bool | None) -> bool:
        number = self.machine.slot - 1
        if state is not None:
            self._rpc(f"/rpc/Switch.Set?id={number}&on={'true' if state else 'false'}")
        path = f"/rpc/Switch.GetStatus?id={number}"
        answer = web.members(self.machine, path, self._rpc(path))
        return _known(self.machine, answer.get("output"), {True: True, False: False})

    def _rpc(self, path: str) -> Any:
        status, text, headers = web.exchange(self.machine, path, tls=False)
        if status == 401 and self.machine.password:
            login = web.digest(self.machine, path, headers.get("www-authenticate", ""))
            return web.request(self.machine, path, headers=login, tls=False)
        if status == 401:
            raise RefusedError(f"{self.machine.address} wants a password: set power_password")
        if status != 200:
            raise PowerError(f"{self.machine.address} answers HTTP {status} to {path}")
        try:
            return json.loads(text)
        except ValueError:
            raise PowerError(f"{self.machine.address} answers {path} with text that is not JSON") from None

    def on(self, stale: bool = False) -> None:
        """Switch on. A machine that shut itself down starts only when its supply was off before."""
        if stale and self._ask(None):
            self._ask(False)
            time.sleep(DISCHARGE)
        self._ask(True)

    def off(self) -> None:
        """Cut."""
        self._ask(False)

    def shut_down(self) -> None:
        """Not possible."""
        raise PowerError("a plug cannot shut down a system; ssh can")

    def is_on(self) -> bool | None:
        """Ask the plug."""
        return self._ask(None)


def _known(machine: Machine, said: Any, states: dict[Any, bool]) -> bool:
    try:
        return states[said]
    except (KeyError, TypeError):
        raise PowerError(f"{machine.address} does not say whether relay {machine.slot} is on") from None
