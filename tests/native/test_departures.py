"""Processes of users who left end, also those that have a subordinate number as in containers without root."""

from __future__ import annotations

from tests.native import notebooks
from tests.native.cluster import Cluster

IN_A_NAMESPACE = """
setsid unshare --user --keep-caps sh -c '
    until grep --quiet . /proc/self/uid_map; do sleep 0.1; done
    exec setpriv --reuid=1 sleep 600
' >/dev/null 2>&1 </dev/null &
"""
END = """
from ansible.module_utils.slurmstead.identity import sessions
print([*sessions.outside_jobs([2001]).values()], sessions.end([2001]), sessions.outside_jobs([2001]))
"""


def test_a_process_with_a_subordinate_number_ends() -> None:
    with Cluster() as cluster:
        cluster.run("sh", "-c", IN_A_NAMESPACE, user="alice")
        cluster.wait_for(lambda: cluster.tried("pgrep", "--uid", "alice", "sh").stdout, 10, "it is there")
        number = cluster.run("pgrep", "--oldest", "--uid", "alice", "sh")
        # What newuidmap(1) does.
        cluster.run("sh", "-c", f"echo 1 5000 1 >/proc/{number}/uid_map")
        cluster.wait_for(lambda: cluster.tried("pgrep", "--uid", "5000", "sleep").stdout, 10, "it has another number")

        assert notebooks.run(cluster, END) == "[2001] {} {}"
        assert cluster.tried("pgrep", "--uid", "5000").stdout == ""
