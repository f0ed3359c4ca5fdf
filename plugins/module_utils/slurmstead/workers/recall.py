# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Take back workers that slurmctld has given up and whose slurmd answers again.

slurmctld does not ping a node that is down. It asks such a node to register at every twentieth of its pings only, which
is up to 33 minutes later with SlurmdTimeout=300 (ping_nodes in src/slurmctld/ping_nodes.c, 22.05 to 24.11). A resume
makes it ping the node at once.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.slurmstead.slurm.answers import flags
from ansible.module_utils.slurmstead.slurm.daemons import Slurm

GIVEN_UP = ("Not responding", "slurm")
"""Reason and author."""

LEFT_ALONE = ("DRAIN", "FAIL", "FUTURE", "POWER", "REBOOT")
"""Beginnings of the flags of a node about which a person, or slurmctld, has decided something else."""

SECONDS = 2.0
AT_ONCE = 64


def is_given_up(shown: Mapping[str, str]) -> bool:
    """Say whether slurmctld has put a node down because it did not answer.

    >>> node = {"State": "DOWN+NOT_RESPONDING", "Reason": "Not responding", "ReasonSetByUser": "slurm"}
    >>> is_given_up(node), is_given_up({**node, "ReasonSetByUser": "ann"}), is_given_up({**node, "State": "DOWN+DRAIN"})
    (True, False, False)
    """
    states = flags(shown)
    return (
        {"DOWN", "NOT_RESPONDING"} <= states
        and not any(state.startswith(LEFT_ALONE) for state in states)
        and (shown["Reason"], shown["ReasonSetByUser"]) == GIVEN_UP
    )


def answers(address: str, port: int) -> bool:
    """Say whether something accepts a connection there."""
    try:
        socket.create_connection((address, port), SECONDS).close()
    except OSError:
        return False
    return True


def main() -> list[str]:
    """Take back the workers that answer; return their names."""
    slurm = Slurm()
    down = {name: shown for name, shown in slurm.nodes().items() if is_given_up(shown)}
    if not down:
        return []
    port = int(slurm.setting("SlurmdPort").split("-")[0])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        alive = pool.map(lambda shown: answers(shown["NodeAddr"], int(shown.get("Port") or port)), down.values())
        back = {name: shown for (name, shown), answered in zip(down.items(), alive, strict=True) if answered}
    if back:
        slurm.resume(back)
    return sorted(back)
