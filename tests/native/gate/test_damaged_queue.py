"""A queue that slurmctld cannot read is not blamed on a setting, and stays for the restore."""

from __future__ import annotations

import time

from tests.native.cluster import Cluster
from tests.native.gate.test_publish import published

SAVED = "/var/lib/slurm/slurmctld"
DAMAGE = f'for file in {SAVED}/job_state {SAVED}/job_state.old; do truncate --size=100 "$file"; done'


def test_a_damaged_queue_is_named_and_the_backup_asked_for(release: str) -> None:
    with Cluster(release, 1) as cluster:
        cluster.run("sbatch", "--begin=now+1hour", "--wrap=true", user="alice")
        # Twice as long as slurmctld may take to save the queue, so that there is an older file, too.
        time.sleep(6)
        cluster.run("sbatch", "--begin=now+1hour", "--wrap=true", user="alice")
        time.sleep(6)
        cluster.stop("control")
        cluster.run("sh", "-c", DAMAGE)
        damaged = cluster.run("sha256sum", f"{SAVED}/job_state")

        for keys in ({}, {"MaxJobCount": 25001}):
            said = published(cluster, **keys)
            assert "restore your last backup with `stead restore FILE`" in said["error"]
            assert "-i" not in said["error"]
            assert cluster.run("sha256sum", f"{SAVED}/job_state") == damaged
