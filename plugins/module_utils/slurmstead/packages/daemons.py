# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The daemons that make a machine one of the cluster, before and after their packages are replaced."""

from __future__ import annotations

from collections.abc import Mapping

from ansible.module_utils.slurmstead.doctor.facts import services
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.reach.deadline import wait_while

NAMES = ("munge", "slurmctld", "slurmd")
"""In the order in which they are restarted."""

SETTLE = 120.0
"""Seconds in which a daemon that ran before has to run again."""

PAUSE = 1.0


class DaemonError(Exception):
    """A daemon does not run any more; the text says what to do."""


def running() -> dict[str, int]:
    """Return the main processes of the daemons that run. Raises DaemonError where systemd does not say."""
    units = [f"{name}.service" for name in NAMES]
    code, out, err = run("systemctl", "show", "--property=ActiveState,MainPID", *units, seconds=120)
    if code:
        raise DaemonError(f"systemd does not report which daemons run: {err.strip()}")
    blocks = [dict(line.split("=", 1) for line in block.splitlines()) for block in out.split("\n\n")]
    shown = dict(zip(NAMES, blocks, strict=True))
    return {name: int(unit["MainPID"]) for name, unit in shown.items() if unit["ActiveState"] == "active"}


def outdated() -> list[str]:
    """Return the daemons that are older than what they consist of."""
    return [name for name, pid in running().items() if services.outdated(pid)]


def renew(before: Mapping[str, int]) -> list[str]:
    """Restart what is older than its files, and wait until all that ran `before` run; return those that were restarted.

    Jobs go on: the units end the daemons only (KillMode=process). Raises DaemonError.
    """
    for name in outdated():
        run("systemctl", "restart", name, seconds=SETTLE)
    if missing := wait_while(lambda: sorted(before.keys() - running().keys()), SETTLE, PAUSE):
        raise DaemonError(
            f"{missing[0]} is no longer running; see `journalctl -u {missing[0]}`, fix the cause and start it"
        )
    return [name for name, pid in running().items() if before.get(name, pid) != pid]
