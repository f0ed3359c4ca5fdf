"""A cluster whose workers reach the outside through control only: jobs use it, and the outside finds ssh only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.firewall import table as firewall
from ansible.module_utils.slurmstead.network import plan, table
from tests.native.cluster import CONTROL, ENTER, ENVIRONMENT, NETWORK, Cluster
from tests.native.test_network import TCP

pytestmark = pytest.mark.slow

HOME, HERE = "192.168.1.1", "192.168.1.7"
"""The outside's address, and control's there."""

LISTEN = """
import socket, sys, threading
def serve(port):
    server = socket.create_server(("0.0.0.0", port))
    while True:
        one, (peer, _) = server.accept()
        one.sendall(peer.encode())
        one.close()
for port in sys.argv[1:]:
    threading.Thread(target=serve, args=(int(port),)).start()
"""
"""Tells each client its address."""

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()"
"""Succeeds also if the server says nothing, as slurmctld does."""

OUTSIDE = """
set -e
setsid unshare --net sleep infinity </dev/null >/dev/null 2>&1 &
pid=$!
until [ "$(readlink /proc/$pid/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add out0 type veth peer name eth0 netns $pid
ip address add 192.168.1.7/24 dev out0
ip link set out0 up
for command in "link set lo up" "address add 192.168.1.1/24 dev eth0" "link set eth0 up" \\
    "route add 10.1.0.0/16 via 192.168.1.7"; do
    nsenter --target $pid --net ip $command
done
echo 1 > /proc/sys/net/ipv4/ip_forward
echo $pid
"""


class House:
    """A cluster behind control, and the outside."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pid = cluster.run("sh", "-c", OUTSIDE).splitlines()[-1]
        address = cluster.addresses[CONTROL]
        # The first process of the cluster is the switch: what is for the outside goes to control's cable.
        way = ("ip", "route", "add", "192.168.1.0/24", "via", address, "dev", "c0", "onlink")
        subprocess.run([*ENTER, f"--target={cluster._init}", *way], env=ENVIRONMENT, check=True)
        self.inside = plan.Inside(interface="eth0", network=str(NETWORK), address=address)
        machines = [cluster.addresses[name] for name in (CONTROL, *cluster.nodes)]
        wall = firewall.text(firewall.Openings(cluster=machines, inside=["eth0"]))
        for name in (CONTROL, *cluster.nodes):
            cluster.run("nft", "--file", "-", on=name, text=wall)
        self.open()
        self.listen("80", outside=True)
        self.listen("22")

    def open(self) -> None:
        """Load the table of the router."""
        self.cluster.run("nft", "--file", "-", text=table.text(self.inside))

    def listen(self, port: str, outside: bool = False) -> None:
        """Listen outside or on control."""
        where = ["nsenter", "--target", self.pid, "--net"] if outside else []
        program = ["sh", "-c", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "sh", *where, "python3", "-c", LISTEN, port]
        self.cluster.run(*program)
        target = HOME if outside else "127.0.0.1"
        self.cluster.wait_for(lambda: self.cluster.tried("python3", "-c", TCP, target, port).returncode == 0, 60, port)

    def attack(self, address: str, port: str) -> subprocess.CompletedProcess[str]:
        """Connect from outside."""
        return self.cluster.tried("nsenter", "--target", self.pid, "--net", "python3", "-c", CONNECT, address, port)


@pytest.fixture(scope="module")
def house(release: str) -> Iterator[House]:
    """A cluster of two workers behind control."""
    with Cluster(release, nodes=2) as cluster:
        yield House(cluster)


def fetch(house: House) -> subprocess.CompletedProcess[str]:
    """Run a job on all workers that connects to the outside; it prints the address that the outside sees."""
    return house.cluster.tried("srun", "--nodes=2", "python3", "-c", TCP, HOME, "80", user="alice")


def test_jobs_reach_the_outside_with_the_address_of_control(house: House) -> None:
    done = fetch(house)

    assert done.stdout.split() == [HERE, HERE], done.stderr


def test_there_is_no_other_way_out(house: House) -> None:
    house.cluster.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward")
    without = fetch(house)
    house.cluster.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    assert without.returncode != 0
    assert HERE not in without.stdout
    assert fetch(house).stdout.split() == [HERE, HERE]


def test_slurm_works_without_the_outside(house: House) -> None:
    house.cluster.run("ip", "link", "set", "out0", "down")
    ran = house.cluster.run("srun", "--nodes=2", "hostname", user="alice").split()
    house.cluster.run("ip", "link", "set", "out0", "up")

    assert sorted(ran) == house.cluster.nodes


ATTACKS = [
    *(("control", port) for port in ("6817", "6818", "6819", "111", "2049", "53", "3142")),
    *(("inside", port) for port in ("6817", "22")),
    *(("node1", port) for port in ("6818", "22")),
]


def test_the_outside_finds_ssh_only(house: House) -> None:
    addresses = {**house.cluster.addresses, "control": HERE, "inside": house.inside.address}
    found = {(name, port) for name, port in ATTACKS if house.attack(addresses[name], port).returncode == 0}

    assert house.attack(HERE, "22").returncode == 0
    # It is the same sshd.
    assert found <= {("inside", "22")}


@pytest.mark.parametrize(("source", "target", "port"), [("node1", "control", "6817"), ("control", "node1", "6818")])
def test_machines_of_the_cluster_find_slurm(house: House, source: str, target: str, port: str) -> None:
    address = house.cluster.addresses[target]

    assert house.cluster.tried("python3", "-c", CONNECT, address, port, on=source).returncode == 0
