# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Proves on one machine, without jobs, that its method works, and measures how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.slurmstead.power import shutdown, watch
from ansible.module_utils.slurmstead.power.methods import method
from ansible.module_utils.slurmstead.power.model import Machine, PowerError
from ansible.module_utils.slurmstead.power.node import FALLING, RISING
from ansible.module_utils.slurmstead.power.switch import switch
from ansible.module_utils.slurmstead.reach.deadline import wait_while
from ansible.module_utils.slurmstead.slurm.answers import flags
from ansible.module_utils.slurmstead.workers.service import unready

MEASURES = ("ipmi", "redfish")
"""Methods whose devices measure the supply; others report the state that was set last."""

SHUTDOWN = 300.0
"""Seconds that a system may take to shut down."""
NOTICE = 60.0
"""Seconds in which a device that measures has to notice that the system has shut down."""
QUIET = 10.0
"""Seconds for which the machine has to stay off. Supplies also need some to discharge."""
PAUSE = 1.0

Nodes = Callable[[], Mapping[str, Mapping[str, str]]]
"""Returns the fields of each node as Slurm.nodes() does."""


def check(machine: Machine, nodes: Nodes) -> tuple[str, bool | None]:
    """Return when the node's slurmd started, as slurmctld shows it, and whether its device says that it is on.

    :raises PowerError: the machine cannot be tested now
    """
    shown = nodes().get(machine.name)
    if shown is None:
        raise PowerError("slurmctld does not know it; run `scripts/stead up` first")
    if flags(shown) & (FALLING | RISING):
        raise PowerError(f"it sleeps ({shown['State']}); wake it first: scripts/stead power on {machine.name}")
    if not shutdown.answers(machine):
        raise PowerError(f"{machine.host} does not answer; switch the machine on first")
    supply = method(machine).is_on()
    if supply is False:
        raise PowerError("its device says that it is off, but it answers: that is the device of another machine")
    return shown.get("SlurmdStartTime", ""), supply


def down(machine: Machine) -> float | None:
    """Shut the system down as power saving does; returns the seconds until it was silent.

    Returns None if the operator's computer has to do it. The machine accepts control's key only after an `up` with
    power_idle for this machine. And a BMC may be that of another machine, which has jobs: see `up`.

    :raises PowerError: it was not told, or still answers
    """
    if machine.method in MEASURES or not (method(machine).orderly or watch.may_sleep(machine.name)):
        return None
    return _shut_down(machine)


def up(
    machine: Machine, started: str, others: Mapping[str, str], nodes: Nodes, deadline: float
) -> tuple[float | None, float]:
    """Cut the supply of a machine that has shut down, and switch it on again.

    A BMC has then shown whose it is. So only now it shuts the system down as power saving does, and all is repeated.

    :param started: as `check` returned it
    :param others: addresses of the other machines by name
    :param deadline: seconds for a boot
    :return: seconds until the system was silent, None without a BMC; seconds until its slurmd was ready for jobs
    :raises PowerError: see `cut` and `wake`
    """
    cut(machine, others)
    taken = wake(machine, started, nodes, deadline)
    if machine.method not in MEASURES:
        return None, taken
    started = nodes()[machine.name]["SlurmdStartTime"]
    off = _shut_down(machine)
    cut(machine, others)
    return off, wake(machine, started, nodes, deadline)


def _shut_down(machine: Machine) -> float:
    began = time.monotonic()
    shutdown.shut_down(machine)
    if wait_while(lambda: shutdown.answers(machine), SHUTDOWN, PAUSE):
        raise PowerError(f"it was told to shut down and still answers after {SHUTDOWN:.0f} s; nothing was cut")
    return time.monotonic() - began


def cut(machine: Machine, others: Mapping[str, str]) -> None:
    """Cut the supply of a machine that has shut down, and see that it, and no other machine, stays silent.

    :param others: addresses of the other machines by name
    :raises PowerError: the device is not that of this machine, or does not obey
    """
    device = method(machine)
    if machine.method in MEASURES and wait_while(device.is_on, NOTICE, PAUSE):
        raise PowerError(
            f"its system has shut down, and {machine.address} still reports on after {NOTICE:.0f} s; nothing was cut. "
            "Either that is the device of another machine, or the system halts without switching off"
        )
    before = answering(others)
    done = switch(machine, "off")
    if done.problem:
        raise PowerError(done.problem)
    time.sleep(QUIET)
    if lost := sorted(before - answering({name: others[name] for name in before})):
        switch(machine, "on")
        raise PowerError(
            f"when its supply was cut, {', '.join(lost)} went silent, and was switched on again; whose is it?"
        )
    if shutdown.answers(machine) or device.is_on():
        raise PowerError(
            f"it came back within {QUIET:.0f} s after its supply was cut; see the settings of its firmware"
        )


def answering(addresses: Mapping[str, str]) -> set[str]:
    """Return which machines answer on the network."""
    machines = [Machine(name, "", host=host) for name, host in addresses.items()]
    with ThreadPoolExecutor(16) as pool:
        return {one.name for one in pool.map(lambda one: one if shutdown.answers(one) else None, machines) if one}


def wake(machine: Machine, started: str, nodes: Nodes, deadline: float) -> float:
    """Switch a machine on; returns the seconds until its slurmd was ready for jobs.

    :param started: when slurmd started, as `check` returned it
    :param deadline: seconds
    :raises PowerError: it was not ready in time
    """
    began = time.monotonic()
    done = switch(machine, "on")
    if done.problem:
        raise PowerError(done.problem)
    if wait_while(lambda: not shutdown.answers(machine), deadline, PAUSE):
        raise PowerError(f"it was switched on, and {machine.host} does not answer after {deadline:.0f} s")

    def missing() -> list[str]:
        found = nodes()
        # slurmctld may not have noticed that it was away.
        same = found.get(machine.name, {}).get("SlurmdStartTime") == started
        return unready(found, [machine.name]) or ([f"{machine.name} (slurmd has not registered yet)"] if same else [])

    if left := wait_while(missing, deadline - (time.monotonic() - began), PAUSE):
        raise PowerError(f"it answers, and is not ready for jobs after {deadline:.0f} s: {left[0]}")
    return time.monotonic() - began
