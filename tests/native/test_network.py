"""A router between two networks, with the real dnsmasq and nft: what the inside gets, and what the outside finds."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import time
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.firewall import table as firewall
from ansible.module_utils.slurmstead.network import dhcp, dnsmasq, plan, table
from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.network import Network

pytestmark = pytest.mark.slow

MAC = "52:54:00:00:00:0b"
INSIDE = plan.Inside(
    interface="in0",
    network="10.77.0.0/24",
    address="10.77.0.1",
    pool=("10.77.0.200", "10.77.0.210"),
    bmc_network="10.78.0.0/24",
    hosts=(plan.Host("control", "10.77.0.1"), plan.Host("node1", "10.77.0.11", MAC)),
)
CLUSTER = [host.address for host in INSIDE.hosts]

LISTEN = """
import socket, threading
def tcp(port):
    server = socket.create_server(("0.0.0.0", port))
    while True:
        one, (peer, _) = server.accept()
        with one:
            one.sendall(peer.encode())
def udp(port):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("0.0.0.0", port))
    while True:
        word, peer = one.recvfrom(64)
        open(f"/run/heard-{port}", "w").write(peer[0])
        one.sendto(peer[0].encode(), peer)
for kind, ports in ((tcp, (22, 80, 443, 3142, 6817, 6818)), (udp, (123, 6817))):
    for port in ports:
        threading.Thread(target=kind, args=(port,)).start()
"""
"""Tells each client its address."""

TCP = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 1.5) as one:
        print(one.recv(64).decode())
except OSError as error:
    sys.exit(type(error).__name__)
"""
UDP = """
import socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.settimeout(1.5)
if len(sys.argv) > 3:
    one.bind((sys.argv[3], 0))
one.sendto(b"?", (sys.argv[1], int(sys.argv[2])))
try:
    print(one.recv(64).decode())
except OSError as error:
    sys.exit(type(error).__name__)
"""
LEASE = """#!/bin/sh
[ "$new_ip_address" ] || exit 0
ip address replace "$new_ip_address/24" dev "$interface"
ip route replace default via "$new_routers"
echo "$new_ip_address $new_domain_name_servers $new_ntp_servers $new_host_name" > /run/lease
"""
"""For dhclient; the real script would write the /etc/resolv.conf that all machines share here."""

PROBE = pathlib.Path(dhcp.__file__).read_text()

WAKE = """
from ansible.module_utils.slurmstead.power.model import Machine
from ansible.module_utils.slurmstead.power.wake_on_lan import WakeOnLan
WakeOnLan(Machine("node1", "wake_on_lan", host="10.77.0.11", mac="52:54:00:00:00:0b")).on()
"""
CARD = """
import socket
card = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
card.bind(("", 9))
packet, (peer, _) = card.recvfrom(200)
open("/run/woken", "w").write(f"{len(packet)} from {peer}")
"""


def write(net: Network, path: str, text: str) -> None:
    net.run("sh", "-c", 'cat > "$0" && chmod 755 "$0"', path, text=text)


@pytest.fixture(scope="module")
def net(release: str) -> Iterator[Network]:
    """The router `control` between `outside` and the switch with `node1`, `stranger` and `bmc`; all is loaded."""
    with Network(release) as net:
        for name in ("control", "outside", "node1", "stranger", "bmc", "rogue"):
            net.machine(name)
        net.cable("control", "out0", "outside", "eth0")
        outside(net, "192.168.1.7")
        net.run("ip", "address", "add", "192.168.1.1/24", "dev", "eth0", on="outside")
        net.plug("control", "in0", ["10.77.0.1/24", "10.78.0.1/24"])
        net.plug("node1", "eth0", mac=MAC)
        net.plug("stranger", "eth0")
        net.plug("bmc", "eth0", ["10.78.0.5/24"])
        net.run("ip", "route", "add", "default", "via", "10.78.0.1", on="bmc")
        net.run("mkdir", "-p", "/etc/netns/control")
        write(net, "/etc/netns/control/resolv.conf", "nameserver 192.168.1.1\n")
        write(net, "/run/lease-script", LEASE)
        write(net, "/run/dhcp-probe", PROBE)
        net.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward", on="control")
        wall = firewall.Openings(cluster=CLUSTER, inside=["in0"])
        for text in (table.text(INSIDE), firewall.text(wall)):
            net.run("nft", "--file", "-", on="control", text=text)
        write(net, "/run/dnsmasq.conf", dnsmasq.text(INSIDE))
        net.run("dnsmasq", "--test", "--conf-file=/run/dnsmasq.conf")
        serve(net)
        upstream = ("--no-resolv", "--no-hosts", "--address=/example.org/203.0.113.9", "--pid-file=/run/upstream.pid")
        net.ask("dnsmasq", "--keep-in-foreground", *upstream, on="outside", stays=True)
        for name in ("control", "outside", "node1", "bmc"):
            net.ask("python3", "-c", LISTEN, on=name, stays=True)
        wait(net, "outside", "127.0.0.1", 6818)
        wait(net, "node1", "127.0.0.1", 6818)
        lease(net, "node1")
        yield net


def outside(net: Network, address: str) -> None:
    """Give control this address outside instead of the one that it had."""
    net.run("ip", "address", "flush", "dev", "out0", on="control")
    net.run("ip", "address", "add", f"{address}/24", "dev", "out0", on="control")
    net.run("ip", "route", "replace", "default", "via", "192.168.1.1", on="control")


def serve(net: Network) -> None:
    """Start dnsmasq as its unit does."""
    net.run("python3", "/run/dhcp-probe", "in0", "/run/dnsmasq.conf", on="control")
    net.ask("dnsmasq", "--keep-in-foreground", "--conf-file=/run/dnsmasq.conf", on="control", stays=True)


def wait(net: Network, on: str, address: str, port: int) -> None:
    end = time.monotonic() + 20
    while net.ask("python3", "-c", TCP, address, str(port), on=on)[0]:
        assert time.monotonic() < end, f"nothing listens on {on}"
        time.sleep(0.1)


def lease(net: Network, name: str) -> list[str]:
    """Let a machine ask for an address; return what it got."""
    files = (f"-lf=/run/{name}.leases", f"-pf=/run/{name}.pid")
    options = [word for pair in files for word in pair.split("=")]
    net.run("rm", "-f", "/run/lease")
    net.run("dhclient", "-1", "-sf", "/run/lease-script", *options, "eth0", on=name)
    return net.run("cat", "/run/lease").split()


def test_a_machine_of_the_inventory_gets_its_address_name_and_time_source(net: Network) -> None:
    assert lease(net, "node1") == ["10.77.0.11", "10.77.0.1", "10.77.0.1", "node1"]


def test_a_machine_that_is_not_known_gets_an_address_of_the_pool(net: Network) -> None:
    address = lease(net, "stranger")[0]

    assert 200 <= int(address.removeprefix("10.77.0.")) <= 210


def test_a_new_card_gets_the_address_at_once_that_an_old_one_had(net: Network) -> None:
    """A board was replaced, and its lease has not expired."""
    new = "52:54:00:00:00:0c"
    net.machine("board")
    net.plug("board", "eth0", mac=new)
    lease(net, "node1")
    found = []
    for mac, name in ((new, "board"), (MAC, "node1")):
        hosts = tuple(dataclasses.replace(host, mac=host.mac and mac) for host in INSIDE.hosts)
        write(net, "/run/dnsmasq.conf", dnsmasq.text(dataclasses.replace(INSIDE, hosts=hosts)))
        net.run("sh", "-c", "kill $(cat /run/dnsmasq.pid)")
        serve(net)
        found.append(lease(net, name)[0])
        net.run("ip", "address", "flush", "dev", "eth0", on="board")

    assert found == ["10.77.0.11", "10.77.0.11"]


@pytest.mark.parametrize(
    ("name", "address"), [("node1", "10.77.0.11"), ("control.cluster", "10.77.0.1"), ("example.org", "203.0.113.9")]
)
def test_the_inside_resolves_machines_and_the_outside(net: Network, name: str, address: str) -> None:
    assert f"has address {address}" in net.run("host", "-t", "A", name, "10.77.0.1", on="node1")


def test_the_inside_reaches_the_outside_also_after_its_address_changed(net: Network) -> None:
    before = net.run("python3", "-c", TCP, "192.168.1.1", "80", on="node1").strip()
    outside(net, "192.168.1.77")
    after = net.run("python3", "-c", TCP, "192.168.1.1", "80", on="node1").strip()
    outside(net, "192.168.1.7")

    assert (before, after) == ("192.168.1.7", "192.168.1.77")


ATTACKS = {
    "ssh of a worker, by a route": (TCP, "10.77.0.11", "22"),
    "slurmd of a worker, by a route": (TCP, "10.77.0.11", "6818"),
    "slurmctld": (TCP, "192.168.1.7", "6817"),
    "slurmctld at the inside address": (TCP, "10.77.0.1", "6817"),
    "a package cache": (TCP, "192.168.1.7", "3142"),
    "the time": (UDP, "192.168.1.7", "123"),
    "a BMC, by a route": (TCP, "10.78.0.5", "443"),
    "the name server": ("host", "node1", "192.168.1.7"),
    "the name server at the inside address": ("host", "node1", "10.77.0.1"),
    "an address by DHCP": ("dhcp",),
}


@pytest.fixture
def routes(net: Network) -> None:
    """The outside sends packets for the inside to control."""
    for network in ("10.77.0.0/24", "10.78.0.0/24"):
        net.run("ip", "route", "replace", network, "via", "192.168.1.7", on="outside")


@pytest.mark.usefixtures("routes")
def test_the_outside_finds_ssh(net: Network) -> None:
    assert net.run("python3", "-c", TCP, "192.168.1.7", "22", on="outside").strip() == "192.168.1.1"


@pytest.mark.usefixtures("routes")
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_outside_finds_nothing_else(net: Network, attack: tuple[str, ...]) -> None:
    if attack[0] == "dhcp":
        # Exits with 0: no server answers.
        assert net.ask("python3", "/run/dhcp-probe", "eth0", on="outside")[0] == 0
        return
    words = ("host", "-W", "1", *attack[1:]) if attack[0] == "host" else ("python3", "-c", *attack)
    code, out, _ = net.ask(*words, on="outside")

    assert code != 0 and "has address" not in out


@pytest.mark.usefixtures("routes")
def test_a_forged_address_of_the_inside_does_not_pass(net: Network) -> None:
    net.run("ip", "address", "add", "10.77.0.11/32", "dev", "lo", on="outside")
    net.run("rm", "-f", "/run/heard-6817")
    net.ask("python3", "-c", UDP, "192.168.1.7", "6817", "10.77.0.11", on="outside")
    net.run("ip", "address", "del", "10.77.0.11/32", "dev", "lo", on="outside")

    assert net.ask("cat", "/run/heard-6817")[0] != 0


def test_only_control_reaches_a_bmc(net: Network) -> None:
    assert net.run("python3", "-c", TCP, "10.78.0.5", "443", on="control").strip() == "10.78.0.1"
    assert net.ask("python3", "-c", TCP, "10.78.0.5", "443", on="node1")[0] != 0
    assert net.ask("python3", "-c", TCP, "192.168.1.1", "80", on="bmc")[0] != 0


def test_a_magic_packet_goes_to_the_network_of_its_machine(net: Network) -> None:
    """The default route leads outside; it may also be down."""
    net.run("rm", "-f", "/run/woken")
    net.ask("python3", "-c", CARD, on="node1", stays=True)
    sources = remote_call.sources(remote_call.imports("", WAKE))
    program = remote_call.PROGRAM.partition("called =")[0].format(sources=sources) + WAKE
    end = time.monotonic() + 10
    while net.ask("test", "-s", "/run/woken")[0] and time.monotonic() < end:
        net.run("python3", "-", on="control", text=program)

    assert net.ask("cat", "/run/woken")[1] == "102 from 10.77.0.1"


def test_the_routers_own_dhcp_server_is_not_another_one(net: Network) -> None:
    assert net.run("python3", "/run/dhcp-probe", "in0", on="control") == ""


def test_another_dhcp_server_is_named(net: Network) -> None:
    net.plug("rogue", "eth0", ["10.77.0.66/24"])
    options = ("--port=0", "--dhcp-range=10.77.0.70,10.77.0.80", "--pid-file=/run/rogue.pid", "--dhcp-authoritative")
    net.ask("dnsmasq", *options, "--dhcp-leasefile=/run/rogue.leases", on="rogue")
    code, _, said = net.ask("python3", "/run/dhcp-probe", "in0", on="control")
    net.run("sh", "-c", "kill $(cat /run/rogue.pid)")

    assert (code, said.strip()) == (1, "another DHCP server answers on in0: 10.77.0.66; switch it off")


def test_overlapping_networks_are_refused_with_both(net: Network) -> None:
    net.run("ip", "address", "add", "10.77.0.9/16", "dev", "out0", on="control")
    links = json.loads(net.run("ip", "-json", "address", on="control"))
    net.run("ip", "address", "del", "10.77.0.9/16", "dev", "out0", on="control")
    said = plan.refusal(links, "in0", INSIDE.network, INSIDE.address)

    assert "10.77.0.0/24 (router_network) overlaps 10.77.0.0/16 on out0" in said
