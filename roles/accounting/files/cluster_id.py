#!/usr/bin/python3
"""Give slurmctld the cluster ID that the database has, before it starts.

From 24.05 slurmctld invents an ID at its first start, and writes it to `clustername` in its StateSaveLocation. slurmdbd
invents another one when it first hears of the cluster, and slurmctld then ends with "CLUSTER ID MISMATCH", at once or
at its next reconfigure. The queue does not depend on the ID. Says so if it changed it.
Usage: cluster-id STATE_DIRECTORY CLUSTER
"""

import os
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
    """Write the ID of the database; if it does not answer, or does not know the cluster, leave the file."""
    path, cluster = pathlib.Path(sys.argv[1]) / "clustername", sys.argv[2]
    if not path.is_file():
        return
    name, number = stored(path.read_text())
    if name != cluster or not number or not cluster.replace("-", "").replace("_", "").isalnum():
        return
    command = ["mariadb", "--batch", "--skip-column-names", "--execute", QUERY.format(cluster)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    known = done.stdout.strip()
    if done.returncode == 0 and known.isdigit() and known != number:
        new, seen = path.with_name("clustername.new"), path.stat()
        new.write_text(f"{name}|{known}")
        os.chown(new, seen.st_uid, seen.st_gid)
        new.replace(path)
        sys.stdout.write(f"{path}: {number} is now {known}\n")


if __name__ == "__main__":
    main()
