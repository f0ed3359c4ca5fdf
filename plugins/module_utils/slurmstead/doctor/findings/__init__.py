# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The doctor's rules: one small function for each kind of problem, judging the facts of all machines.

A function gets the whole Cluster and yields a Finding for each fault. To add one, write it, add it to RULES, and add a
case that makes it fire to tests/unit/doctor/test_findings.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding
from ansible.module_utils.slurmstead.doctor.findings import (
    accounting,
    daemons,
    identity,
    jobs,
    network,
    people,
    slurm,
    storage,
)

RULES: tuple[Callable[[Cluster], Iterator[Finding]], ...] = (
    network.silent_machines,
    network.names,
    network.addresses,
    network.resolution,
    network.firewalls,
    network.ports,
    network.blocked_ports,
    network.packet_sizes,
    identity.clocks,
    identity.time_sources,
    identity.accounts,
    identity.groups,
    people.accounts,
    people.returned,
    people.groups,
    people.keys,
    people.sudo,
    people.jobs,
    identity.keys,
    identity.signatures,
    identity.round_trips,
    daemons.services,
    daemons.failed_units,
    daemons.descriptions,
    daemons.old_programs,
    daemons.packages,
    daemons.mixtures,
    storage.mounts,
    storage.separation,
    storage.space,
    storage.controllers,
    storage.exports,
    storage.swap,
    slurm.answers,
    slurm.places,
    slurm.published,
    slurm.loaded,
    slurm.fetched,
    slurm.restarts,
    slurm.nodes,
    slurm.partitions,
    accounting.records,
    jobs.orphans,
    jobs.missing_steps,
    jobs.mpi,
)


def findings(cluster: Cluster) -> list[Finding]:
    """Return the findings by machine, without those that another finding explains."""
    found = [finding for rule in RULES for finding in rule(cluster)]
    there = {(finding.host, finding.about) for finding in found}
    causes = [finding for finding in found if not there & set(finding.explained_by)]
    return sorted(causes, key=lambda finding: finding.host)
