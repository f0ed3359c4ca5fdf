# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The methods by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansible.module_utils.slurmstead.power.command import Command
from ansible.module_utils.slurmstead.power.ipmi import Ipmi
from ansible.module_utils.slurmstead.power.model import Machine, Method
from ansible.module_utils.slurmstead.power.plug import Plug
from ansible.module_utils.slurmstead.power.redfish import Redfish
from ansible.module_utils.slurmstead.power.turing_pi import TuringPi
from ansible.module_utils.slurmstead.power.wake_on_lan import WakeOnLan

METHODS: Mapping[str, Callable[[Machine], Method]] = {
    "command": Command,
    "ipmi": Ipmi,
    "plug": Plug,
    "redfish": Redfish,
    "turing_pi": TuringPi,
    "wake_on_lan": WakeOnLan,
}


def method(machine: Machine) -> Method:
    """Return what switches a machine."""
    return METHODS[machine.method](machine)
