# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The cluster's daemons on a machine, before and after their packages are replaced."""

from __future__ import annotations

from collections.abc import Mapping

from ansible.module_utils.slurmstead.doctor.facts import services
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.reach.deadline import wait_while

NAMES = ("munge", "slurmdbd", "slurmctld", "slurmd")
"""The daemons, in restart order."""

SETTLE = 120.0
"""Timeout in seconds until a daemon that ran before must run again."""

PAUSE = 1.0


class DaemonError(Exception):
    """A daemon is no longer running; the text says what to do."""


def running() -> dict[str, int]:
    """Return the main processes of the running daemons. Raises DaemonError if systemd does not answer."""
    units = [f"{name}.service" for name in NAMES]
    code, out, err = run("systemctl", "show", "--property=ActiveState,MainPID", *units, seconds=120)
    if code:
        raise DaemonError(f"systemd does not report which daemons run: {err.strip()}")
    blocks = [dict(line.split("=", 1) for line in block.splitlines()) for block in out.split("\n\n")]
    shown = dict(zip(NAMES, blocks, strict=True))
    return {name: int(unit["MainPID"]) for name, unit in shown.items() if unit["ActiveState"] == "active"}


def outdated() -> list[str]:
    """Return the daemons whose files were replaced after they started."""
    return [name for name, pid in running().items() if services.outdated(pid)]


def renew(before: Mapping[str, int]) -> list[str]:
    """Restart daemons older than their files, and wait until all that ran `before` run; return the restarted ones.

    Jobs continue: the units end only the daemons (KillMode=process). Raises DaemonError.
    """
    for name in outdated():
        run("systemctl", "restart", name, seconds=SETTLE)
    if missing := wait_while(lambda: sorted(before.keys() - running().keys()), SETTLE, PAUSE):
        raise DaemonError(
            f"{missing[0]} is no longer running; see `journalctl -u {missing[0]}`, fix the cause and start it"
        )
    return [name for name, pid in running().items() if before.get(name, pid) != pid]
