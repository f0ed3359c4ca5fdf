"""Boot files over the network, with the real dnsmasq: one machine gets them, by BIOS, UEFI and iPXE, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ansible.module_utils.slurmstead.install import plan
from ansible.module_utils.slurmstead.network import dnsmasq
from tests.native.network import PACKAGES, Network
from tests.native.test_network import INSIDE, MAC, write

pytestmark = pytest.mark.slow

NODE = plan.Plan(
    node="node1",
    mac=MAC,
    address="10.77.0.11",
    network=INSIDE.network,
    router=INSIDE.address,
    domain=INSIDE.domain,
    user="ansible",
    keys=("ssh-ed25519 AAAA me",),
    disk="A1",
)

BOOT = f"{NODE.url('70ce')}boot"

FIRMWARE = """
import json, os, socket, struct, sys, time
architecture, is_ipxe, mac = int(sys.argv[1]), sys.argv[2] == "ipxe", bytes.fromhex(sys.argv[3].replace(":", ""))
xid = os.urandom(4)
options = [(53, b"\\x01"), (55, bytes([1, 3, 66, 67])), (60, b"PXEClient:Arch:%05d" % architecture)]
options += [(93, struct.pack("!H", architecture))] + ([(175, b"\\x01\\x01\\x01")] if is_ipxe else [])
head = struct.pack("!BBBB4sHH16s16s192s4s", 1, 1, 6, 0, xid, 0, 0x8000, b"", mac, b"", b"\\x63\\x82\\x53\\x63")
packet = head + b"".join(bytes([code, len(data)]) + data for code, data in options) + b"\\xff"
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
link.bind(("", 68))
link.settimeout(10)
link.sendto(packet, ("255.255.255.255", 67))
while True:
    answer = link.recv(4096)
    if answer[4:8] == xid:
        break
found, rest = {}, answer[240:]
while rest and rest[0] != 255:
    if rest[0] == 0:
        rest = rest[1:]
        continue
    found[rest[0]], rest = rest[2:2 + rest[1]], rest[2 + rest[1]:]
name = found.get(67) or answer[108:236]
print(json.dumps([socket.inet_ntoa(answer[16:20]), name.rstrip(b"\\0").decode()]))
"""
"""Asks for an address as the firmware of a network card does; prints it and the name of the boot file."""

TFTP = """
import socket, struct, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.settimeout(10)
link.sendto(b"\\0\\1" + sys.argv[1].encode() + b"\\0octet\\0", ("10.77.0.1", 69))
size = 0
while True:
    data, peer = link.recvfrom(1024)
    if data[:2] != b"\\0\\3":
        sys.exit(f"no file: {data!r}")
    link.sendto(b"\\0\\4" + data[2:4], peer)
    size += len(data) - 4
    if len(data) < 516:
        break
print(size)
"""


@pytest.fixture(scope="module")
def net(release: str) -> Iterator[Network]:
    """Control as router while node1 is installed, and the machines `node1` and `other`."""
    with Network(release, (*PACKAGES, "ipxe")) as net:
        for name in ("control", "node1", "other"):
            net.machine(name)
        net.plug("control", "in0", ["10.77.0.1/24"])
        net.plug("node1", "eth0", mac=MAC)
        net.plug("other", "eth0")
        net.run("mkdir", "-p", "/etc/slurmstead")
        write(net, plan.DNSMASQ, dnsmasq.text(INSIDE))
        write(net, "/run/dnsmasq.conf", plan.dnsmasq(NODE, "70ce"))
        net.run("dnsmasq", "--test", "--conf-file=/run/dnsmasq.conf")
        net.ask("dnsmasq", "--keep-in-foreground", "--conf-file=/run/dnsmasq.conf", on="control", stays=True)
        yield net


def boot(net: Network, name: str, architecture: int, kind: str = "rom") -> list[str]:
    """Return the address and the boot file that a machine's firmware gets."""
    mac = net.run("cat", "/sys/class/net/eth0/address", on=name).strip()
    said: list[str] = json.loads(net.run("python3", "-c", FIRMWARE, str(architecture), kind, mac, on=name))
    return said


@pytest.mark.parametrize(
    ("architecture", "kind", "file"),
    [
        (0, "rom", "undionly.kpxe"),
        (7, "rom", "snponly.efi"),
        (9, "rom", "snponly.efi"),
        (0, "ipxe", BOOT),
        (7, "ipxe", BOOT),
    ],
)
def test_the_machine_boots_over_the_network(net: Network, architecture: int, kind: str, file: str) -> None:
    assert boot(net, "node1", architecture, kind) == ["10.77.0.11", file]


@pytest.mark.parametrize("kind", ["rom", "ipxe"])
def test_no_other_machine_boots_over_the_network(net: Network, kind: str) -> None:
    address, file = boot(net, "other", 0, kind)

    assert address.startswith("10.77.0.2")
    assert file == ""


@pytest.mark.parametrize("name", ["undionly.kpxe", "snponly.efi"])
def test_control_has_the_boot_files(net: Network, name: str) -> None:
    net.run("ip", "address", "replace", "10.77.0.11/24", "dev", "eth0", on="node1")

    assert int(net.run("python3", "-c", TFTP, name, on="node1")) > 50_000


def test_control_serves_no_other_file(net: Network) -> None:
    net.run("ip", "address", "replace", "10.77.0.11/24", "dev", "eth0", on="node1")

    assert net.ask("python3", "-c", TFTP, "../../../etc/passwd", on="node1")[0] != 0
