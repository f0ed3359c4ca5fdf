#!/usr/bin/python3
"""Make slurmctld forget a cluster ID that the database does not know, before it starts.

From 24.05 slurmctld invents an ID at its first start, and writes it to `clustername` in its StateSaveLocation. slurmdbd
invents another one when the cluster registers, and slurmctld then ends with "CLUSTER ID MISMATCH". Without the file,
slurmctld takes the ID of the database; the queue stays. Usage: cluster-id STATE_DIRECTORY CLUSTER
"""

import pathlib
import subprocess
import sys

QUERY = "SELECT id FROM slurm_acct_db.cluster_table WHERE deleted = 0 AND name = '{}'"


def stored(text: str) -> tuple[str, str]:
    """Return the cluster and its ID in the file; the ID is empty before 24.05.

    >>> stored("home|2946"), stored("home")
    (('home', '2946'), ('home', ''))
    """
    name, _, number = text.strip().partition("|")
    return name, number


def main() -> None:
    """Remove the file if it has another ID than the database; if the database does not answer, leave it."""
    path, cluster = pathlib.Path(sys.argv[1]) / "clustername", sys.argv[2]
    if not path.is_file():
        return
    name, number = stored(path.read_text())
    if name != cluster or not number or not cluster.replace("-", "").replace("_", "").isalnum():
        return
    command = ["mariadb", "--batch", "--skip-column-names", "--execute", QUERY.format(cluster)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode == 0 and done.stdout.strip() != number:
        path.rename(path.with_name("clustername.before-accounting"))


if __name__ == "__main__":
    main()
