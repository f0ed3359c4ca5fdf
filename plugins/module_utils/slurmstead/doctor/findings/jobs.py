# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Do slurmctld and the workers agree about the jobs, and can jobs use the configured MPI?"""

from __future__ import annotations

from collections.abc import Iterator

from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding, both

SETTLED = 60.0
"""Age in seconds from which both sides must know a step: the machines are not asked at the same moment."""


def orphans(cluster: Cluster) -> Iterator[Finding]:
    """No worker has a step of a job that slurmctld has forgotten."""
    known = cluster.brain.get("slurm", {}).get("jobs")
    if known is None:
        return
    for name, facts in cluster.running("slurmd"):
        old = (number for number, age in facts["steps"].items() if age > SETTLED)
        if lost := sorted(set(old) - set(known), key=int):
            seen = f"it has a slurmstepd of job {', '.join(lost)}, which slurmctld does not know"
            advice = "its health check ends it within minutes; see `journalctl -t slurmstead-health` there"
            yield Finding(name, "orphan", seen, advice)


def missing_steps(cluster: Cluster) -> Iterator[Finding]:
    """Every step that slurmctld has on a worker has processes there."""
    steps = cluster.brain.get("slurm", {}).get("steps", {})
    for name, facts in cluster.running("slurmd"):
        held = [number for number, step in steps.items() if name in step["nodes"] and step["age"] > SETTLED]
        if lost := sorted(set(held) - facts["steps"].keys(), key=int):
            seen = f"slurmctld has job {', '.join(lost)} running here, but no process of it is left"
            advice = f"`scancel {' '.join(lost)}`, or `scontrol requeue {','.join(lost)}` to run it again"
            yield Finding(name, "job", seen, advice, both([name], "service slurmd"))


def mpi(cluster: Cluster) -> Iterator[Finding]:
    """Workers have the library of the default MPI."""
    settings = conf_model.read(cluster.brain.get("slurm", {}).get("files", {}).get("slurm.conf", "")).settings
    default = settings["mpidefault"].value if "mpidefault" in settings else ""
    for name, facts in cluster.running("slurmd"):
        if default.startswith("pmix") and not facts["pmix"]:
            seen = f"MpiDefault is {default}, but the library of PMIx is not installed"
            yield Finding(
                name, "mpi", seen, "install the package libpmix2 (Debian 12) or libpmix2t64, or change MpiDefault"
            )
