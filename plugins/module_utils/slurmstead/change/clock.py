# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Restarts slurmctld after a jump of the clock.

slurmctld compares times of day (ping_nodes in src/slurmctld/ping_nodes.c, 22.05 to 24.11). If the clock goes forward, a
worker that slurmctld last heard before the jump counts as silent since then: it is put down, and its jobs are requeued.
The first ping after a start puts nobody down, and a worker registers when its clock has followed (role slurmd). If the
clock goes back, slurmctld neither pings the workers nor lets them check their health until the old time has come again.
"""

from __future__ import annotations

from ansible.module_utils.slurmstead.change.decisions import Decisions
from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.reach.deadline import wait_while
from ansible.module_utils.slurmstead.slurm.daemons import Service, Slurm, Systemd

SECONDS = 240
"""For the restart. After a jump back, slurmctld waits for the old time once it has saved its state; systemd ends it
after 90 s."""


def restart(service: Service, slurm: Slurm, store: Store) -> list[str]:
    """Restart slurmctld, and set again what an administrator had set at run time; returns a line for each.

    What is noted already is in the care of a run that is under way.
    """
    decisions = Decisions(store, slurm)
    ours = slurm.answers() and not decisions.kept
    said = decisions.keep(store.seen()) if ours else []
    service.restart()
    wait_while(lambda: service.state() != "running" or not slurm.answers(), SECONDS, every=1)
    return [*said, *decisions.finish()] if ours else said


def main() -> list[str]:
    """Restart slurmctld unless it is off."""
    service = Systemd()
    return restart(service, Slurm(), Store()) if service.state() in ("running", "starting") else []
