# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for nodes on which jobs are alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.conf.partitions import QUIET
from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, in_words, shown

NEVER_FROZEN = re.compile(r"(munge|slurmd|ssh|sshd|dbus|dbus-broker|chrony|systemd-.*)(\.service)?")
"""Services without which no job starts, no administrator can log in, or the clock is wrong."""


def quiet_nodes_are_only_workers(
    slurm_quiet: Mapping[str, bool],
    worker_names: Sequence[str],
    control_names: Sequence[str],
    nfs_server_names: Sequence[str],
) -> Iterator[HostViolation]:
    """A node runs jobs, and no daemon of the cluster that is busy while they run."""
    quiet = [host for host, value in slurm_quiet.items() if value]
    for groups, what in ((control_names, "slurmctld"), (nfs_server_names, "the NFS server")):
        if hosts := tuple(host for host in quiet if host in groups):
            yield hosts, "slurm_quiet", f"is true, but {what} would disturb jobs here", "Remove it from this host"
    busy = {*control_names, *nfs_server_names}
    if hosts := tuple(host for host in quiet if host not in worker_names and host not in busy):
        yield hosts, "slurm_quiet", "is true, but no job runs here", "Set it for workers only"


def quiet_nodes_are_shared_by_name_only(
    slurm_quiet: Mapping[str, bool], slurm_partitions: Mapping[str, Mapping[str, Any]], control_names: Sequence[str]
) -> Iterator[HostViolation]:
    """A site's own partition has quiet nodes if it names them; `quiet` has those with slurm_quiet."""
    quiet = sorted(host for host, value in slurm_quiet.items() if value)
    for control in control_names[:1] if quiet else ():
        for name, keys in slurm_partitions.get(control, {}).items():
            nodes = keys.get("Nodes") if isinstance(keys, Mapping) else None
            if nodes is not None and name == QUIET:
                yield (
                    (control,),
                    "slurm_partitions",
                    f"{name}: Nodes is set, but slurm_quiet says which nodes are in it",
                    "Remove Nodes",
                )
            elif str(nodes).upper() == "ALL" or nodes == ["ALL"]:
                yield (
                    (control,),
                    "slurm_partitions",
                    f"{name}: Nodes: ALL includes {in_words(quiet)}, whose slurm_quiet is true",
                    "Name its nodes; a job of it on a quiet node keeps jobs of quiet waiting",
                )


def quiet_units_are_possible(quiet_keep: Sequence[str], quiet_services: Sequence[str]) -> Iterator[Violation]:
    """What is kept has its full name, or nothing would be kept; what jobs need is not frozen."""
    for name in quiet_keep:
        if not name.endswith((".timer", ".service")):
            yield "quiet_keep", f"has {shown(name)}, which is not the name of a unit", "End it with .timer or .service"
    for name in quiet_services:
        if NEVER_FROZEN.fullmatch(name):
            yield "quiet_services", f"has {name}, but jobs or administrators need it", "Remove it"


def system_cores_are_a_number_of_cores(slurm_system_cores: Mapping[str, int]) -> Iterator[HostViolation]:
    """Cores for the system are a number; whether the node has as many is known when it has been measured."""
    if hosts := tuple(host for host, cores in slurm_system_cores.items() if cores < 0):
        yield hosts, "slurm_system_cores", "is less than 0", "Set the number of cores that no job gets, or 0"
