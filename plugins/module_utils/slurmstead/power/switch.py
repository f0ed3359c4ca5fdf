# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Switches one machine and asks its device what came of it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.slurmstead.power import shutdown
from ansible.module_utils.slurmstead.power.methods import method
from ansible.module_utils.slurmstead.power.model import Machine, Method, PowerError, RefusedError
from ansible.module_utils.slurmstead.reach.deadline import wait_while

SETTLE = 15.0
"""Seconds in which a device has to report what was set."""

PAUSE = 0.5

SILENCE = 60.0
"""Seconds in which a system that is shutting down falls silent."""
QUIET = 15.0
"""Seconds that a silent system may need to halt, if its device does not show that it has."""


@dataclasses.dataclass(frozen=True)
class Done:
    """What happened to a machine; `power` is on, off, unknown (the method cannot tell) or error."""

    name: str
    power: str
    changed: bool = False
    problem: str = ""
    refused: bool = False
    """whether the device refused the credentials"""


def together(machines: Sequence[Machine], act: Callable[[Machine], Done]) -> list[Done]:
    """Return what `act` did with machines. What a device refuses for one machine is not sent for its others."""
    asked: dict[tuple[str, str, str], Machine] = {}
    for machine in machines:
        asked.setdefault(_login(machine), machine)
    with ThreadPoolExecutor(16) as pool:
        first = dict(zip(asked, pool.map(act, asked.values()), strict=True))

        def others(machine: Machine) -> Done:
            done, one = first[_login(machine)], asked[_login(machine)]
            if machine is one:
                return done
            if not done.refused:
                return act(machine)
            said = f"{machine.address} has refused these credentials for {one.name}"
            return Done(machine.name, "error", problem=said, refused=True)

        return list(pool.map(others, machines))


def _login(machine: Machine) -> tuple[str, str, str]:
    return machine.address or machine.name, machine.user, machine.password


def _failed(machine: Machine, error: PowerError) -> Done:
    return Done(machine.name, "error", problem=str(error), refused=isinstance(error, RefusedError))


def switch(machine: Machine, state: str, settle: float = SETTLE) -> Done:
    """Bring a machine's supply to a state, `on` or `off`; `status` only asks.

    A machine that already has the state is left alone. A device that then reports another state is a problem.
    """
    power = method(machine)
    try:
        before = power.is_on()
        if state == "status" or before is (state == "on"):
            return Done(machine.name, _word(before))
        if state == "on":
            power.on()
        elif before is None and not machine.cuts:
            # Wake-on-LAN: nothing can be cut, so the shutdown before has to suffice.
            return Done(machine.name, _word(before))
        else:
            power.off()
        after = _settled(power, state == "on", settle)
    except PowerError as error:
        return _failed(machine, error)
    if after is not None and after is not (state == "on"):
        said = f"its device accepted `{state}` and still reports {_word(after)} after {settle:.0f} s"
        return Done(machine.name, _word(after), problem=said)
    return Done(machine.name, _word(after), changed=True)


def cut(machine: Machine) -> Done:
    """Cut the supply of a machine that has been shut down; while its system answers, nothing is cut.

    The computer that shut it down may have reached another machine, or none, so only what is seen from here counts.
    """
    try:
        power = method(machine)
        if power.is_on() is not False:
            if wait_while(lambda: shutdown.answers(machine), SILENCE, PAUSE):
                said = f"its system still answers at {machine.host}, so its supply was not cut"
                return Done(machine.name, _word(power.is_on()), problem=said)
            wait_while(lambda: power.is_on() is not False, QUIET, PAUSE)
    except PowerError as error:
        return _failed(machine, error)
    return switch(machine, "off")


def _settled(power: Method, wanted: bool, seconds: float) -> bool | None:
    until = time.monotonic() + seconds
    while True:
        found = power.is_on()
        if found is None or found is wanted or time.monotonic() > until:
            return found
        time.sleep(PAUSE)


def _word(found: bool | None) -> str:
    return "unknown" if found is None else "on" if found else "off"
