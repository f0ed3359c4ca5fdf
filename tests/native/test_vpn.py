"""A computer outside, control and a worker behind it, with the real wg, wg-quick and nft.

What a peer reaches whose keys and configuration `stead vpn add` made, and who is out.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Iterator

import jinja2
import pytest

from ansible.module_utils.slurmstead.firewall import table as firewall
from ansible.module_utils.slurmstead.network import table
from ansible.module_utils.slurmstead.vpn import text
from ansible.module_utils.slurmstead.vpn.peers import Peer
from slurmstead.site import vpn
from tests.native.network import PACKAGES, Network
from tests.native.test_network import CLUSTER, INSIDE, LISTEN, TCP, wait, write

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[2]
VPN = "10.79.0.0/24"
PROGRAM = "/run/vpn"


def program() -> str:
    """The program of the role, as its template makes it."""
    environment = jinja2.Environment(keep_trailing_newline=True)
    environment.filters |= {"comment": "# {}".format, "vpn_address": text.own_address}
    source = (ROOT / "roles/vpn/templates/vpn.sh.j2").read_text()
    return environment.from_string(source).render(ansible_managed="managed", vpn_network=VPN)


def peers(net: Network, *listed: Peer) -> None:
    """Give control these peers."""
    write(net, "/etc/slurmstead/vpn.conf", text.peers(listed, 51820))


def more(net: Network) -> None:
    """Let the laptop send more through the VPN than its configuration says."""
    key = net.run("cat", "/run/slurmstead-vpn.pub").strip()
    net.run("wg", "set", "wg0", "peer", key, "allowed-ips", f"{VPN},10.77.0.0/24", on="laptop")
    for network in (VPN, "10.77.0.0/24"):
        net.run("ip", "route", "replace", network, "dev", "wg0", on="laptop")


@pytest.fixture(scope="module")
def net(release: str) -> Iterator[Network]:
    """`control` between `laptop` outside, which is a peer, and `node1`."""
    with Network(release, tuple(sorted((*PACKAGES, "wireguard-go", "wireguard-tools")))) as net:
        for name in ("control", "laptop", "node1"):
            net.machine(name)
        net.cable("control", "out0", "laptop", "eth0")
        net.run("ip", "address", "add", "192.168.1.7/24", "dev", "out0", on="control")
        net.run("ip", "address", "add", "192.168.1.1/24", "dev", "eth0", on="laptop")
        net.plug("control", "in0", ["10.77.0.1/24"])
        net.plug("node1", "eth0", ["10.77.0.11/24"])
        net.run("ip", "route", "add", "default", "via", "10.77.0.1", on="node1")
        net.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward", on="control")
        wall = firewall.Openings(cluster=CLUSTER, inside=["in0"], udp=[51820], tcp=[443])
        for rules in (table.text(INSIDE), firewall.text(wall)):
            net.run("nft", "--file", "-", on="control", text=rules)
        for name in ("control", "node1"):
            net.ask("python3", "-c", LISTEN, on=name, stays=True)
            wait(net, name, "127.0.0.1", 6818)
        net.run("mkdir", "-p", "/etc/slurmstead")
        write(net, "/etc/slurmstead/vpn.nft", text.table(VPN, [22]))
        private, public = vpn.make_keys()
        peers(net, Peer("laptop", public, "10.79.0.2"))
        write(net, PROGRAM, program())
        net.run(PROGRAM, "start", on="control")
        control = net.run("cat", "/run/slurmstead-vpn.pub").strip()
        given = vpn.configuration(private, "10.79.0.2", control, vpn.endpoint("192.168.1.7", 51820), VPN)
        write(net, "/etc/wireguard/wg0.conf", given)
        net.run("wg-quick", "up", "wg0", on="laptop")
        yield net


def test_a_peer_reaches_ssh_of_control(net: Network) -> None:
    wait(net, "laptop", "10.79.0.1", 22)
    assert net.run("python3", "-c", TCP, "10.79.0.1", "22", on="laptop").strip() == "10.79.0.2"


@pytest.mark.parametrize(
    ("address", "port"),
    [
        *(("10.79.0.1", port) for port in (80, 443, 3142, 6817, 6818)),
        *(("10.77.0.1", port) for port in (443, 6817)),
        *(("10.77.0.11", port) for port in (22, 80, 6818)),
    ],
)
def test_a_peer_reaches_nothing_else_also_if_it_sends_more(net: Network, address: str, port: int) -> None:
    more(net)
    assert net.ask("python3", "-c", TCP, address, str(port), on="laptop")[0] != 0


def test_an_address_of_another_peer_does_not_pass(net: Network) -> None:
    net.run("ip", "address", "add", "10.79.0.3/32", "dev", "wg0", on="laptop")
    forged = net.ask("ping", "-c", "1", "-W", "1", "-I", "10.79.0.3", "10.79.0.1", on="laptop")
    net.run("ip", "address", "del", "10.79.0.3/32", "dev", "wg0", on="laptop")

    assert forged[0] != 0
    assert net.ask("ping", "-c", "1", "-W", "2", "-I", "10.79.0.2", "10.79.0.1", on="laptop")[0] == 0


def test_control_tells_when_a_peer_was_last_there(net: Network) -> None:
    wait(net, "laptop", "10.79.0.1", 22)
    public = net.run("wg", "show", "wg0", "public-key", on="laptop").strip()
    said = net.run("wg", "show", text.INTERFACE, "latest-handshakes", on="control")

    assert 0 <= text.handshakes(said, time.time())[public] < 600


def test_only_root_of_control_reads_the_private_key(net: Network) -> None:
    assert net.run("stat", "--format=%a %u", "/etc/slurmstead/vpn.key").split() == ["600", "0"]


def test_a_second_start_keeps_the_key(net: Network) -> None:
    before = net.run("cat", "/run/slurmstead-vpn.pub")
    net.run(PROGRAM, "start", on="control")

    assert net.run("cat", "/run/slurmstead-vpn.pub") == before


def test_a_peer_that_was_removed_is_out_at_once(net: Network) -> None:
    public = net.run("wg", "show", "wg0", "public-key", on="laptop").strip()
    peers(net)
    net.run(PROGRAM, "reload", on="control")
    removed = net.ask("python3", "-c", TCP, "10.79.0.1", "22", on="laptop")[0]
    peers(net, Peer("laptop", public, "10.79.0.2"))
    net.run(PROGRAM, "reload", on="control")
    wait(net, "laptop", "10.79.0.1", 22)

    assert removed != 0


def test_a_reload_makes_what_was_deleted(net: Network) -> None:
    net.run("ip", "link", "delete", text.INTERFACE, on="control")
    net.run("nft", "delete", "table", text.FAMILY, text.NAME, on="control")
    net.run(PROGRAM, "reload", on="control")

    wait(net, "laptop", "10.79.0.1", 22)
    assert f"table {text.FAMILY} {text.NAME}" in net.run("nft", "list", "tables", on="control")


def test_who_has_no_key_gets_no_answer(net: Network) -> None:
    net.run("ip", "link", "set", "wg0", "down", on="laptop")
    ask = (
        "import socket\none = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\none.settimeout(1.5)\n"
        "one.connect(('192.168.1.7', 51820))\none.send(bytes([1, 0, 0, 0]) + bytes(144))\n"
        "try:\n    print(one.recv(200))\nexcept TimeoutError:\n    print('silent')\n"
    )
    said = net.run("python3", "-c", ask, on="laptop").strip()
    net.run("ip", "link", "set", "wg0", "up", on="laptop")

    assert said == "silent"
