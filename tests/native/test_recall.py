"""A worker that slurmctld gave up is back soon after it can be reached; what is off, or put down by a person, stays."""

from __future__ import annotations

import time

from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.cluster import Cluster

PROGRAM = remote_call.program("workers.recall", "main", {})


def test_a_worker_that_answers_again_is_taken_back(release: str) -> None:
    with Cluster(release, 4, {"SlurmdTimeout": "9", "SlurmctldLogFile": "/var/log/slurm/slurmctld.log"}) as cluster:
        # First, because a node that is put down is taken back when it answers a ping (ReturnToService=2).
        cluster.cut("node1", "node2", "node3", "node4")
        cluster.run("scontrol", "update", "nodename=node3", "state=down", "reason=fan")
        cluster.run("scontrol", "update", "nodename=node4", "state=drain", "reason=fan")
        cluster.wait_until("down*", ["node1", "node2", "node3"], 90)
        cluster.join("node1", "node3", "node4")

        back = cluster.run("python3", "-", text=PROGRAM)
        began = time.monotonic()
        cluster.wait_until("idle", ["node1"], 20)
        seconds = time.monotonic() - began
        again = cluster.run("python3", "-", text=PROGRAM)
        states = cluster.states()

    assert back == '["node1"]'
    assert again == "[]"
    assert seconds < 20
    assert states["node2"] == "down*"
    assert states["node3"].startswith("down")
    assert states["node4"].startswith("drain")
