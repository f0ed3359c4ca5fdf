# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Are the jobs recorded?"""

from __future__ import annotations

from collections.abc import Iterator

from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding, both


def records(cluster: Cluster) -> Iterator[Finding]:
    """slurmdbd answers."""
    error = cluster.brain.get("accounting", {}).get("error")
    if error:
        waiting = cluster.brain["accounting"]["waiting"]
        kept = f", and slurmctld keeps {waiting} records for it" if waiting else ""
        advice = "see `journalctl -u slurmdbd -u mariadb`; jobs go on, and no record is lost"
        causes = both([cluster.control], "service slurmdbd", "service mariadb", "service munge", "space")
        yield Finding(cluster.control, "accounting", f"slurmdbd does not answer: {error}{kept}", advice, causes)
