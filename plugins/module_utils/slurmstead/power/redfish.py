# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Redfish (DMTF DSP0266), as iLO 4 and newer, iDRAC and most BMCs since 2016 speak it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.slurmstead.power import web
from ansible.module_utils.slurmstead.power.model import Machine, PowerError

SYSTEMS = "/redfish/v1/Systems/"
ACTION = "#ComputerSystem.Reset"


class Redfish:
    """A BMC whose system number `slot` is the machine."""

    orderly = True

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._path = ""

    def _ask(self, path: str, body: Any = None) -> Mapping[str, Any]:
        return web.members(self.machine, path, web.request(self.machine, path, body, web.basic(self.machine)))

    def _system(self) -> Mapping[str, Any]:
        if not self._path:
            # iLO 4 answers a path without its last slash with a redirect.
            members = self._ask(SYSTEMS).get("Members") or []
            if len(members) < self.machine.slot:
                raise PowerError(f"{self.machine.address} has {len(members)} systems, not number {self.machine.slot}")
            try:
                self._path = str(members[self.machine.slot - 1]["@odata.id"])
            except (KeyError, TypeError):
                raise PowerError(f"{self.machine.address} does not answer {SYSTEMS} as Redfish does") from None
        return self._ask(self._path)

    def _reset(self, system: Mapping[str, Any], kind: str) -> None:
        action = (system.get("Actions") or {}).get(ACTION) or {}
        # iLO 4 has PushPowerButton in place of GracefulShutdown.
        possible = action.get("ResetType@Redfish.AllowableValues") or [kind]
        if kind not in possible and kind == "GracefulShutdown" and "PushPowerButton" in possible:
            kind = "PushPowerButton"
        if kind not in possible:
            raise PowerError(f"{self.machine.address} cannot do {kind}, only {', '.join(possible)}")
        path = self._path.rstrip("/")
        self._ask(action.get("target") or f"{path}/Actions/ComputerSystem.Reset", {"ResetType": kind})

    def on(self, stale: bool = False) -> None:
        """Switch on; a BMC answers `On` of a machine that is on with an error, so it is asked first."""
        system = self._system()
        if system.get("PowerState") not in ("On", "PoweringOn"):
            self._reset(system, "On")

    def off(self) -> None:
        """Cut."""
        system = self._system()
        if system.get("PowerState") != "Off":
            self._reset(system, "ForceOff")

    def shut_down(self) -> None:
        """Press the power button by ACPI."""
        system = self._system()
        if system.get("PowerState") == "On":
            self._reset(system, "GracefulShutdown")

    def is_on(self) -> bool | None:
        """Ask the BMC; PoweringOff is still on."""
        state = self._system().get("PowerState")
        if state not in ("On", "Off", "PoweringOn", "PoweringOff"):
            raise PowerError(f"{self.machine.address} answers with an unknown PowerState: {state}")
        return bool(state != "Off")
