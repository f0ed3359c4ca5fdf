"""Workers live behind control: they install, run jobs and keep time through it, and the outside finds ssh only.

STEAD_LAB=NAME pytest tests/lab/router
"""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.client import library
from tests.lab.router.conftest import HERE, House

pytestmark = pytest.mark.kernel

MIRROR = r"grep -rhoE '(http|https)://[^/ ]+' /etc/apt/sources.list* | head -1"
"""Prints scheme and host of the machine's Debian mirror."""

FETCH = f"""
site=$({MIRROR})
python3 -c 'import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen(sys.argv[1], timeout=20)
except urllib.error.HTTPError:
    pass
print("reached")' "$site"
"""

TRY = 'python3 -c "import socket; socket.create_connection((\\"{}\\", {}), 3)"'

SCAN = """python3 - <<'END'
import socket
for port in ({ports}):
    try:
        socket.create_connection(("{address}", port), 2).close()
        print(port)
    except OSError:
        pass
END
"""

ECHO = """python3 - <<'END'
import socket
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
    icmp.settimeout(3)
    icmp.sendto(bytes.fromhex("0800f7ff00000000"), ("{address}", 0))
    print(icmp.recv(1500))
END
"""

ASK = """python3 - <<'END'
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.settimeout(3)
    udp.sendto(bytes.fromhex("{question}"), ("{address}", {port}))
    print(udp.recv(1500))
END
"""
NAME = "000101000001000000000000056e6f6465310000010001"
TIME = "23" + 47 * "00"
"""A question for the address of node1, and one for the time (RFC 1035, RFC 5905)."""

EAR = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.bind(("", 9999))
    udp.settimeout(20)
    try:
        print(udp.recv(100).decode())
    except TimeoutError:
        print("silence")
"""
SHOUT = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.bind((sys.argv[1], 0))
    for _ in range(12):
        udp.sendto(b"shout", (sys.argv[2], 9999))
        time.sleep(0.5)
"""

SSH_CONFIG = """Host 10.79.0.1
User alice
IdentityFile /root/laptop/key
StrictHostKeyChecking accept-new
UserKnownHostsFile /root/laptop/known_hosts
"""
SUBMIT = """
from slurmstead.client import Client

client = Client("10.79.0.1", ssh_config="ssh_config")
run = client.map("square", [["2"], ["3"]], entry="main.py", time="5")
print([result.stdout for result in client.results(run, to="results")])
"""


def test_workers_got_their_addresses_by_dhcp(house: House, lab: Any) -> None:
    leases = lab.everywhere(lambda name: lab.root(name, "cat /run/systemd/netif/leases/*"), lab.workers)

    for name, lease in leases.items():
        assert {f"ADDRESS={lab.address(name)}", f"ROUTER={house.inside}", f"DNS={house.inside}"} <= set(lease.split())


def test_they_installed_through_control(house: House, lab: Any) -> None:
    found = lab.everywhere(lambda name: lab.root(name, "dpkg-query -W -f '${Status}' python3-venv"), lab.workers)

    assert set(found.values()) == {"install ok installed"}


def test_a_second_run_changes_nothing(house: House, lab: Any) -> None:
    with contextlib.closing(type(lab)(house.site)) as behind:
        run = behind.ansible()

    assert run.code == 0, run.output[-5000:]
    assert run.changed == {}


def test_jobs_reach_the_outside_and_have_no_other_way(house: House, lab: Any) -> None:
    lab.user(f"cat > fetch <<'END'\n{FETCH}\nEND")
    ask = f"srun --nodes={len(lab.workers)} --ntasks-per-node=1 sh fetch"
    with_it = lab.user(ask)
    lab.root(lab.control, "sysctl -qw net.ipv4.ip_forward=0")
    without = lab.host(lab.control, "alice").run(f"timeout 110 {ask}")
    lab.root(lab.control, "sysctl -qw net.ipv4.ip_forward=1")

    assert with_it.split() == ["reached"] * len(lab.workers)
    assert without.rc != 0
    assert "reached" not in without.stdout
    assert lab.user(ask).split() == ["reached"] * len(lab.workers)


def test_workers_keep_the_time_of_control(house: House, lab: Any) -> None:
    sources = lab.everywhere(lambda name: lab.root(name, "chronyc -n -c sources"), lab.workers)

    for said in sources.values():
        assert [line.split(",")[:3] for line in said.splitlines()] == [["^", "*", house.inside]]


def test_workers_know_the_names_of_the_inside_and_the_outside(house: House, lab: Any) -> None:
    name, other = lab.workers[:2]
    resolver = f"import socket; print(socket.gethostbyname('{other}.cluster'))"
    outside = f"getent ahostsv4 $({MIRROR} | cut -d/ -f3) | head -1"

    assert lab.root(name, "cat /etc/resolv.conf").split() == ["nameserver", house.inside]
    assert lab.root(name, f'python3 -c "{resolver}"').strip() == lab.address(other)
    assert lab.root(name, outside)


def test_the_outside_finds_no_port_but_ssh(house: House, lab: Any) -> None:
    listening = lab.root(lab.control, "ss --no-header -ltn | awk '{print $4}' | grep -oE '[0-9]+$' | sort -un").split()
    found = house.laptop(SCAN.format(address=HERE, ports=", ".join(listening)))

    assert {"6817", "2049", "53"} <= set(listening)
    assert found.stdout.split() == ["22"], found.stderr


ATTACKS = {
    "sshd of a worker": TRY.format("10.77.0.1", 22),
    "slurmd of a worker": TRY.format("10.77.0.2", 6818),
    "slurmctld at the inside address of control": TRY.format("10.77.0.3", 6817),
    "NFS at the inside address of control": TRY.format("10.77.0.3", 2049),
    "an echo of a worker": ECHO.format(address="10.77.0.1"),
    "a name of the inside": ASK.format(question=NAME, address=HERE, port=53),
    "a name at the inside address": ASK.format(question=NAME, address="10.77.0.3", port=53),
    "the time": ASK.format(question=TIME, address=HERE, port=123),
}


@pytest.mark.parametrize("wanted", ATTACKS)
def test_the_outside_does_not_reach_what_the_inside_does(house: House, lab: Any, wanted: str) -> None:
    inside = lab.host(lab.workers[-1]).run("sudo sh -c %s", ATTACKS[wanted].replace(HERE, house.inside))
    outside = house.laptop(ATTACKS[wanted])

    assert inside.rc == 0, inside.stderr
    assert outside.rc == 1, outside.stderr
    assert house.laptop(TRY.format(HERE, 22)).rc == 0


def heard(lab: Any, name: str, shout: Callable[[], object]) -> str:
    """Return what a machine hears on a port while something shouts."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        ear = pool.submit(lab.root, name, f"python3 - <<'END'\n{EAR}\nEND")
        lab.insist(name, "ss --no-header -lun 'sport = :9999' | grep -q .")
        shout()
        return str(ear.result()).strip()


@pytest.mark.parametrize("target", ["control", "worker"])
def test_an_address_of_the_inside_is_not_believed_outside(house: House, lab: Any, target: str) -> None:
    worker, forged = lab.workers[0], lab.address(lab.workers[1])
    name, near, sender = (
        (lab.control, HERE, worker) if target == "control" else (worker, lab.address(worker), lab.control)
    )
    own = f"python3 - {lab.address(sender)} {lab.address(name)} <<'END'\n{SHOUT}\nEND"
    from_outside = f"ip address add {forged}/32 dev eth0\npython3 - {forged} {near} <<'END'\n{SHOUT}\nEND"

    assert heard(lab, name, lambda: lab.root(sender, own)) == "shout"
    assert heard(lab, name, lambda: house.laptop(from_outside)) == "silence"
    assert house.laptop(f"ip address delete {forged}/32 dev eth0").rc == 0
    assert house.laptop(TRY.format(HERE, 22)).rc == 0


def test_a_laptop_works_through_the_vpn_until_it_is_removed(house: House, lab: Any) -> None:
    lab.root(lab.control, "install -d -m 0700 /root/laptop /root/laptop/square")
    house.send("/root/laptop/cluster.conf", house.stead("vpn", "add", "laptop", "--no-qr").encode())
    house.send("/root/laptop/key", (lab.directory / "key").read_bytes())
    house.send("/root/laptop/ssh_config", SSH_CONFIG.encode())
    house.send("/root/laptop/client.tar.gz", library())
    house.send("/root/laptop/square/main.py", b"import sys; print(int(sys.argv[1]) ** 2)")
    house.send("/root/laptop/submit.py", SUBMIT.encode())
    lab.root(lab.control, "tar -xzf /root/laptop/client.tar.gz -C /root/laptop --no-same-owner")
    up = house.laptop("wg-quick up /root/laptop/cluster.conf")
    submitted = house.laptop("cd /root/laptop && python3 submit.py")
    reached = house.laptop(f"{TRY.format('10.79.0.1', 6817)} || {TRY.format(lab.address(lab.workers[0]), 22)}")
    ssh = house.laptop(TRY.format("10.79.0.1", 22))
    house.stead("vpn", "remove", "laptop")
    removed = house.laptop(TRY.format("10.79.0.1", 22))
    lab.root(lab.control, "rm -r /root/laptop")

    assert up.rc == 0, up.stderr
    assert submitted.stdout.splitlines() == ["['4\\n', '9\\n']"], submitted.stderr
    assert (ssh.rc, reached.rc, removed.rc) == (0, 1, 1)
