# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Checks that the daemons of a cluster are compatible at each moment of an upgrade: slurmctld first, then slurmd."""

from __future__ import annotations

from collections.abc import Mapping

from ansible.module_utils.slurmstead.conf.versions import OLDEST_PEER, can_talk, number, series


def problems(control: str, controller: str, nodes: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a line for each machine whose Slurm would be incompatible with slurmctld during the upgrade or after it.

    :param controller: version of the running slurmctld
    :param nodes: versions of the workers at their last registration, including workers that are off now
    :param after: versions of the machines after the upgrade; without machines that are not upgraded
    """
    future = series(after.get(control) or controller)
    found = []
    if future != series(controller):
        found += _state(control, series(controller), future)
    for name in sorted({*nodes, *after} - {control}):
        now, then = (series(versions[name]) if versions.get(name) else future for versions in (nodes, after))
        if number(then) > number(future):
            found.append(
                f"{name}: would get Slurm {then}, but {control} {_has(controller, future)} {future}, which understands "
                f"nothing newer than itself; upgrade {control} first, or correct the package sources of {name}"
            )
        elif not (can_talk(future, now) and can_talk(future, then)):
            old = now if not can_talk(future, now) else then
            found.append(
                f"{name}: has Slurm {old}, which slurmctld {future} on {control} would not understand"
                f"{_reach(future)}; jobs there would be lost. Upgrade in smaller steps, or reinstall both"
            )
    return found


def _state(control: str, now: str, future: str) -> list[str]:
    if number(future) < number(now):
        return [f"{control}: would get slurmctld {future}, which cannot read the state of {now}; correct its sources"]
    if can_talk(future, now):
        return []
    return [f"{control}: would get slurmctld {future}, which cannot read the state of {now}{_reach(future)}"]


def _has(controller: str, future: str) -> str:
    return "has" if series(controller) == future else "would have"


def _reach(controller: str) -> str:
    oldest = OLDEST_PEER.get(controller)
    return f" (it understands {oldest} to {controller})" if oldest else " as far as is known here"
