"""Our programs on control resume what they drained; a drain that an administrator sets meanwhile stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.reach import remote_call
from ansible.module_utils.slurmstead.workers import reasons
from tests.native.cluster import Cluster

LATE = """\
#!/bin/sh
late() {
    [ ! -e /tmp/late ] || { rm /tmp/late; /usr/bin/scontrol.slurm update NodeName=node1 State=DRAIN Reason=fan; }
}
case "$*" in *RESUME*) late ;; esac
[ "$*" = --oneliner ] || exec /usr/bin/scontrol.slurm "$@"
while read -r line; do
    case $line in *RESUME*) late ;; esac
    echo "$line" | /usr/bin/scontrol.slurm --oneliner
done
"""
"""A scontrol in which an administrator drains the node, once, right before it is resumed."""

PROGRAMS = {
    reasons.OPERATIONS["shutdown"]: """
from ansible.module_utils.slurmstead.workers.reasons import OPERATIONS
from ansible.module_utils.slurmstead.workers.service import Service
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
print(Service(["node1", "node2"], OPERATIONS["shutdown"], Slurm()).resume(False).said)
""",
    reasons.UPGRADE: """
from ansible.module_utils.slurmstead.workers.pause import Before, Worker
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
print([Worker(name, Slurm()).give_back(Before(), False) for name in ("node1", "node2")])
""",
    reasons.DUPLICATE: """
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
print(Slurm().resume(Slurm().nodes()))
""",
}
"""Programs that resume both nodes, by the reason for which they were drained."""


@pytest.fixture(scope="module")
def two(release: str) -> Iterator[Cluster]:
    """A cluster of two nodes whose scontrol on control can be late; a test leaves both idle."""
    with Cluster(release, 2, {"SlurmctldLogFile": "/var/log/slurm/slurmctld.log"}) as cluster:
        cluster.run("mv", "/usr/bin/scontrol", "/usr/bin/scontrol.slurm")
        cluster.run("tee", "/usr/bin/scontrol", text=LATE)
        cluster.run("chmod", "755", "/usr/bin/scontrol")
        yield cluster


def run(cluster: Cluster, text: str) -> str:
    """Run a program on control, with all of our modules that it imports."""
    sources = remote_call.sources(remote_call.imports("", text))
    return cluster.run("python3", "-", text=remote_call.PROGRAM.partition("called =")[0].format(sources=sources) + text)


def drains(cluster: Cluster) -> set[str]:
    shown = cluster.run("sinfo", "--noheader", "--Node", "--states=drain", "--format=%N %E")
    return set(shown.splitlines())


@pytest.mark.parametrize("reason", PROGRAMS)
def test_nodes_are_resumed(two: Cluster, reason: str) -> None:
    two.run("scontrol", "update", "NodeName=node[1-2]", "State=DRAIN", f"Reason={reason}")

    run(two, PROGRAMS[reason])

    assert drains(two) == set()
    two.wait_until_idle()


@pytest.mark.parametrize("reason", PROGRAMS)
def test_a_drain_right_before_the_resume_stays_and_the_other_node_is_resumed(two: Cluster, reason: str) -> None:
    two.run("scontrol", "update", "NodeName=node[1-2]", "State=DRAIN", f"Reason={reason}")
    two.run("touch", "/tmp/late")

    said = run(two, PROGRAMS[reason])

    assert two.tried("test", "-e", "/tmp/late").returncode == 1
    assert drains(two) == {"node1 fan"}, said
    two.run("scontrol", "update", "NodeName=node1", "State=RESUME")
    two.wait_until_idle()
