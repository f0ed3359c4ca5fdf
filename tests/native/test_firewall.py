"""The firewall's table on the machines of a cluster: jobs run through it, and nothing else comes in from outside."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.firewall import table
from tests.native.cluster import CONTROL, MUNGE, Cluster

STRANGER = MUNGE
"""A machine of the same network that runs no daemon of Slurm: its address is not in the firewall."""

OPEN, CLOSED = 8000, 8001
NFS = 2049
"""A listener on control plays the NFS server."""
SLURM = ("6817", "6818", "6819")

LISTEN = """
import socket, sys, threading
def answer(one):
    while data := one.recv(64):
        one.sendall(data)
for port in sys.argv[1:]:
    server = socket.create_server(("0.0.0.0", int(port)))
    def serve(server=server):
        while True:
            threading.Thread(target=answer, args=server.accept()[:1]).start()
    threading.Thread(target=serve).start()
"""
"""Listens on ports and returns what it receives."""

CONNECT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 2):
        print("connected")
except OSError as error:
    print(type(error).__name__)
"""

STAY = """
import socket, sys, time
one = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
for word in (b"before", b"after"):
    one.sendall(word)
    print(one.recv(64).decode(), flush=True)
    if word == b"before":
        open("/tmp/stays", "w").close()
        while not __import__("os").path.exists("/tmp/go"):
            time.sleep(0.05)
"""
"""Uses a connection, waits for the file /tmp/go, and uses it again."""

DATAGRAM = """
import socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind(("0.0.0.0", int(sys.argv[1])))
one.settimeout(float(sys.argv[2]))
open("/tmp/bound", "w").close()
try:
    print(one.recv(64).decode())
except TimeoutError:
    print("nothing")
"""


def wall(cluster: Cluster, openings: table.Openings) -> None:
    """Load the table on the controller and the workers."""
    for name in (CONTROL, *cluster.nodes):
        cluster.run("nft", "--file", "-", on=name, text=table.text(openings))


def unwall(cluster: Cluster) -> None:
    """Remove the table from them."""
    for name in (CONTROL, *cluster.nodes):
        cluster.run("nft", "delete", "table", table.FAMILY, table.NAME, on=name)


def connects(cluster: Cluster, source: str, target: str, port: int) -> str:
    """Return `connected`, or the error of an attempt to connect from one machine to another."""
    return cluster.run("python3", "-c", CONNECT, cluster.addresses[target], str(port), on=source)


@pytest.fixture(scope="module")
def openings(cluster: Cluster) -> table.Openings:
    """What the machines accept."""
    return table.Openings(
        cluster=[cluster.addresses[name] for name in (CONTROL, *cluster.nodes)],
        tcp=[OPEN],
        udp=[OPEN],
        slurm=SLURM,
        daemons=[0, int(cluster.run("id", "--user", "slurm"))],
    )


@pytest.fixture(scope="module")
def cluster(release: str) -> Iterator[Cluster]:
    """A cluster whose worker node1 listens on two ports, and control on NFS's."""
    with Cluster(release, nodes=2) as found:
        for name, ports in (("node1", f"{OPEN} {CLOSED}"), (CONTROL, NFS)):
            found.run("sh", "-c", f"setsid python3 -c '{LISTEN}' {ports} >/dev/null 2>&1 </dev/null &", on=name)
        for name, port in (("node1", CLOSED), (CONTROL, NFS)):
            found.wait_for(lambda at=(name, port): connects(found, "node2", *at) == "connected", 10, f"{name} listens")
        yield found


@pytest.fixture
def walled(cluster: Cluster, openings: table.Openings) -> Iterator[Cluster]:
    """The same with the firewall on the controller and the workers."""
    wall(cluster, openings)
    yield cluster
    unwall(cluster)


@pytest.mark.parametrize(("target", "port"), [(CONTROL, 6817), (CONTROL, NFS), ("node1", 6818), ("node1", CLOSED)])
def test_only_the_clusters_machines_reach_a_port_that_is_not_declared(
    cluster: Cluster, openings: table.Openings, target: str, port: int
) -> None:
    assert connects(cluster, STRANGER, target, port) == "connected"
    wall(cluster, openings)
    seen = {source: connects(cluster, source, target, port) for source in (STRANGER, "node2")}
    unwall(cluster)

    assert seen == {STRANGER: "TimeoutError", "node2": "connected"}


def test_a_declared_port_is_open_to_all(walled: Cluster) -> None:
    assert connects(walled, STRANGER, "node1", OPEN) == "connected"


def test_jobs_on_all_workers_run_through_the_firewall(walled: Cluster) -> None:
    assert sorted(walled.run("srun", "--nodes=2", "hostname", user="alice").split()) == ["node1", "node2"]
    # srun on a worker listens there for the other worker's output.
    assert sorted(walled.run("srun", "--nodes=2", "hostname", user="alice", on="node1").split()) == ["node1", "node2"]


def test_a_program_of_a_job_reaches_another_worker_on_any_port(walled: Cluster) -> None:
    words = ("srun", "--nodelist=node2", "python3", "-c", CONNECT, walled.addresses["node1"], str(CLOSED))

    assert walled.run(*words, user="alice") == "connected"


def test_a_worker_reaches_machines_outside(walled: Cluster) -> None:
    walled.run("sh", "-c", f"setsid python3 -c '{LISTEN}' {CLOSED} >/dev/null 2>&1 </dev/null &", on=STRANGER)
    walled.wait_for(lambda: connects(walled, "node2", STRANGER, CLOSED) == "connected", 10, "the stranger listens")

    assert connects(walled, "node2", STRANGER, CLOSED) == "connected"


def test_a_connection_from_outside_that_is_older_than_the_firewall_goes_on(
    cluster: Cluster, openings: table.Openings
) -> None:
    address = cluster.addresses["node1"]
    cluster.run(
        *("sh", "-c", f"setsid python3 -c '{STAY}' {address} {CLOSED} >/tmp/said 2>&1 </dev/null &"), on=STRANGER
    )
    cluster.wait_for(lambda: cluster.tried("test", "-e", "/tmp/stays", on=STRANGER).returncode == 0, 10, "connected")
    wall(cluster, openings)
    new = connects(cluster, STRANGER, "node1", CLOSED)
    cluster.run("touch", "/tmp/go", on=STRANGER)
    cluster.wait_for(lambda: len(cluster.run("cat", "/tmp/said", on=STRANGER).split()) == 2, 20, "both words arrive")
    said = cluster.run("cat", "/tmp/said", on=STRANGER).split()
    unwall(cluster)

    assert (new, said) == ("TimeoutError", ["before", "after"])


@pytest.mark.parametrize(("port", "seconds", "heard"), [(OPEN, 20, "datagram"), (CLOSED, 3, "nothing")])
def test_a_datagram_from_outside_needs_a_declared_port(walled: Cluster, port: int, seconds: int, heard: str) -> None:
    walled.run("rm", "-f", "/tmp/bound", on="node2")
    walled.run("sh", "-c", f"setsid python3 -c '{DATAGRAM}' {port} {seconds} >/tmp/heard 2>&1 </dev/null &", on="node2")
    walled.wait_for(lambda: walled.tried("test", "-e", "/tmp/bound", on="node2").returncode == 0, 10, "bound")
    send = "import socket, sys; socket.socket(2, 2).sendto(b'datagram', (sys.argv[1], int(sys.argv[2])))"
    walled.run("python3", "-c", send, walled.addresses["node2"], str(port), on=STRANGER)
    walled.wait_for(lambda: walled.run("cat", "/tmp/heard", on="node2") != "", seconds + 10, "it ends")

    assert walled.run("cat", "/tmp/heard", on="node2") == heard


def test_any_user_sends_datagrams_such_as_those_of_chrony(walled: Cluster) -> None:
    send = "import socket, sys; socket.socket(2, 2).sendto(b'time', (sys.argv[1], 123))"

    # A packet that the firewall drops is an error of its sender.
    sent = walled.tried("python3", "-c", send, walled.addresses[CONTROL], user="alice")

    assert (sent.returncode, sent.stderr) == (0, "")


def test_ssh_can_be_narrowed(cluster: Cluster, openings: table.Openings) -> None:
    """The port of the listener plays that of sshd."""
    ssh = dataclasses.replace(openings, cluster=[cluster.addresses["node1"]], ssh_ports=[CLOSED], tcp=[])
    seen = []
    for places in ([], [cluster.addresses[STRANGER]], ["10.1.0.0/16"], ["192.0.2.0/24", "2001:db8::/32"]):
        wall(cluster, dataclasses.replace(ssh, ssh_from=places))
        seen.append(connects(cluster, STRANGER, "node1", CLOSED))
    unwall(cluster)

    assert seen == ["connected", "connected", "connected", "TimeoutError"]


def test_loading_it_again_leaves_it_and_the_tables_of_others_as_they_are(
    cluster: Cluster, openings: table.Openings
) -> None:
    other = "add table inet user; add chain inet user input { type filter hook input priority 0; }; "
    cluster.run("nft", f"{other} add rule inet user input tcp dport 9 drop", on="node1")
    wall(cluster, openings)
    before = cluster.run("nft", "list", "ruleset", on="node1")
    wall(cluster, openings)
    after = cluster.run("nft", "--stateless", "list", "ruleset", on="node1")
    unwall(cluster)

    assert "table inet user" in before and "tcp dport 9 drop" in before
    assert [line for line in after.splitlines() if "counter" not in line] == [
        line for line in before.splitlines() if "counter" not in line
    ]
    assert cluster.run("nft", "list", "tables", on="node1") == "table inet user"
