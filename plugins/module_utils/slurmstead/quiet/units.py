# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The units of systemd that rest during a job, from what `systemctl show` prints: pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

TIMER_FIELDS = ("Id", "ActiveState", "Transient", "UnitFileState", "Unit")
SERVICE_FIELDS = ("Id", "ActiveState", "ControlGroup")


class Timer(NamedTuple):
    """A timer that is stopped, and the service that it starts."""

    name: str
    enabled: str
    """UnitFileState: an administrator can disable it during the job."""
    service: str


class Service(NamedTuple):
    """A service that runs."""

    name: str
    group: str
    """Its control group, such as `/system.slice/cron.service`."""
    started: bool
    """Whether it has started. systemd freezes no other one; an update, for instance, is starting until it has ended."""


def blocks(text: str) -> Iterator[dict[str, str]]:
    """Yield the properties of each unit.

    >>> list(blocks("Id=a.timer\\nUnit=a.service\\n\\nId=b.timer\\n"))
    [{'Id': 'a.timer', 'Unit': 'a.service'}, {'Id': 'b.timer'}]
    """
    for block in text.split("\n\n"):
        rows = (line.partition("=") for line in block.splitlines())
        if found := {key: value for key, equals, value in rows if equals}:
            yield found


def timers(text: str, keep: Collection[str]) -> list[Timer]:
    """Return the active timers that are stopped during a job.

    A transient timer would be gone once it is stopped, such as the one that restores a firewall.
    """
    return [
        Timer(found["Id"], found.get("UnitFileState", ""), found.get("Unit", ""))
        for found in blocks(text)
        if found.get("ActiveState") == "active"
        and found.get("Transient") != "yes"
        and not {found["Id"], found.get("Unit")} & set(keep)
    ]


def unchanged(before: Mapping[str, str], text: str) -> list[str]:
    """Return the timers of `before`, by name, whose UnitFileState is as it was."""
    now = {found["Id"]: found.get("UnitFileState", "") for found in blocks(text) if "Id" in found}
    return [name for name, state in before.items() if now.get(name, state) == state]


def running(text: str) -> list[Service]:
    """Return the services that have processes.

    >>> running("Id=cron.service\\nActiveState=active\\nControlGroup=/system.slice/cron.service\\n")
    [Service(name='cron.service', group='/system.slice/cron.service', started=True)]
    """
    states = ("active", "activating", "reloading")
    return [
        Service(found["Id"], found["ControlGroup"], found["ActiveState"] == "active")
        for found in blocks(text)
        if found.get("ActiveState") in states and found.get("ControlGroup")
    ]
