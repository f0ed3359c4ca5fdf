"""New machines behind a router, with the real dnsmasq, sshd and ssh: what is found, who logs in, and what is known."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible.module_utils.slurmstead.discover import identity, judge, login
from ansible.module_utils.slurmstead.network import dnsmasq
from ansible.module_utils.slurmstead.reach import remote_call
from tests.native.network import PACKAGES, Network
from tests.native.test_network import INSIDE, LEASE, MAC, lease, outside, write

pytestmark = pytest.mark.slow

NEW_MAC = "d8:9d:67:00:00:0c"
SERVER = """
set -e
mount -t tmpfs none /sys
mkdir -p /sys/class/dmi/id /sys/devices/system/cpu
echo "$1" > /sys/class/dmi/id/product_serial
echo 0-3 > /sys/devices/system/cpu/online
exec /usr/sbin/sshd -D -h "/run/$0.key" -o PidFile=none -o UsePAM=no -o StrictModes=no \\
    -o AuthorizedKeysFile=/run/operator.pub
"""
"""sshd of a machine with a serial and four cores of its own."""

CONTROL = {
    "ansible_host": "192.168.1.7",
    "ansible_user": "root",
    "ansible_ssh_private_key_file": "/run/operator",
    "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
}
KNOWN = judge.Known("node1", "10.77.0.11", (MAC,))


def key(net: Network, name: str) -> None:
    net.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name)


def serve(net: Network, name: str, serial: str, own: str = "") -> None:
    """Start the sshd of a machine, with the host key of `own`, or with its own."""
    if not own:
        key(net, f"/run/{name}.key")
    net.ask("unshare", "--mount", "sh", "-c", SERVER, own or name, serial, on=name, stays=True)


@pytest.fixture(scope="module")
def net(release: str) -> Iterator[Network]:
    """The operator outside, the router, node1 of the inventory, and the new machines `fresh`, `copy` and `silent`."""
    with Network(release, (*PACKAGES, "ieee-data", "openssh-client", "openssh-server")) as net:
        for name in ("control", "outside", "node1", "fresh", "copy", "silent"):
            net.machine(name)
        net.cable("control", "out0", "outside", "eth0")
        outside(net, "192.168.1.7")
        net.run("ip", "address", "add", "192.168.1.1/24", "dev", "eth0", on="outside")
        net.plug("control", "in0", ["10.77.0.1/24"])
        net.plug("node1", "eth0", mac=MAC)
        net.plug("fresh", "eth0", mac=NEW_MAC)
        net.plug("copy", "eth0", ["10.77.0.66/24"], mac="d8:9d:67:00:00:0d")
        net.plug("silent", "eth0", ["10.77.0.77/24"], mac="52:54:00:00:00:0e")
        net.run("mkdir", "-p", "/run/sshd", "/root/.ssh")
        key(net, "/run/operator")
        write(net, "/run/lease-script", LEASE)
        write(net, "/run/dnsmasq.conf", dnsmasq.text(INSIDE))
        net.ask("dnsmasq", "--keep-in-foreground", "--conf-file=/run/dnsmasq.conf", on="control", stays=True)
        serve(net, "control", "")
        serve(net, "node1", "S1")
        serve(net, "fresh", "CZJ1")
        serve(net, "copy", "S9", own="node1")
        for name in ("node1", "fresh"):
            lease(net, name)
        for name in ("control", "node1", "fresh", "copy"):
            listens(net, name)
        yield net


def listens(net: Network, name: str) -> None:
    end = time.monotonic() + 20
    while not net.ask("ssh-keyscan", "-T", "1", "127.0.0.1", on=name)[1]:
        assert time.monotonic() < end, f"sshd of {name} does not answer"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def seen(net: Network) -> dict[str, dict[str, Any]]:
    """What control finds, by address."""
    program = remote_call.program("discover.look", "look", {"addresses": ["10.77.0.1"], "networks": ["10.78.0.0/24"]})
    found = json.loads(net.run("python3", "-IS", "-", on="control", text=program).splitlines()[-1])
    assert found["notes"] == []
    return {record["address"]: record for record in found["records"]}


def logged_in(net: Network, record: dict[str, Any], keys: list[str]) -> tuple[int, str, str]:
    """Measure a machine from outside, through control, if it presents one of these keys."""
    write(net, "/run/known", "".join(f"{login.ALIAS} {one}\n" for one in keys))
    words = login.command(CONTROL, record["address"], "root", "/run/known")
    program = remote_call.program("discover.machine", "measure", {})
    return net.ask(*words, on="outside", text=program)


def pooled(seen: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The machine that has an address of the pool."""
    return next(record for record in seen.values() if record["mac"] == NEW_MAC)


def test_every_machine_inside_is_found_and_nothing_of_control_or_outside(seen: dict[str, dict[str, Any]]) -> None:
    address = pooled(seen)["address"]

    assert 200 <= int(address.removeprefix("10.77.0.")) <= 210
    assert seen.keys() == {"10.77.0.11", address, "10.77.0.66", "10.77.0.77"}


def test_a_machine_has_its_card_with_maker_and_its_host_key(net: Network, seen: dict[str, dict[str, Any]]) -> None:
    record = pooled(seen)
    printed = net.run("ssh-keygen", "-lf", "/run/fresh.key.pub").split()[1]

    assert record["maker"] == "Hewlett Packard"
    assert record["banner"].startswith("SSH-2.0-OpenSSH")
    assert [identity.fingerprint(one) for one in record["host_keys"]] == [printed]


def test_a_machine_without_ssh_has_no_identity(seen: dict[str, dict[str, Any]]) -> None:
    assert (seen["10.77.0.77"]["host_keys"], seen["10.77.0.77"]["banner"]) == ([], "")


def test_the_operator_logs_in_from_outside_through_control(net: Network, seen: dict[str, dict[str, Any]]) -> None:
    record = pooled(seen)
    code, out, err = logged_in(net, record, record["host_keys"])

    assert code == 0, err
    measured = json.loads(out.splitlines()[-1])
    assert (measured["serial"], measured["cores"], measured["disks"]) == ("CZJ1", 4, [])
    assert measured["memory"] > 0


def test_a_machine_with_another_key_than_control_saw_gets_no_login(
    net: Network, seen: dict[str, dict[str, Any]]
) -> None:
    code, out, err = logged_in(net, pooled(seen), seen["10.77.0.11"]["host_keys"])

    assert (code, out) == (255, "")
    assert "Host key verification failed" in err


def test_only_the_new_machine_is_new_and_the_copy_is_refused(net: Network, seen: dict[str, dict[str, Any]]) -> None:
    measured = {}
    for record in judge.strangers(list(seen.values()), [KNOWN]):
        if record["host_keys"]:
            out = logged_in(net, record, record["host_keys"])[1]
            measured[record["address"]] = {"machine": json.loads(out.splitlines()[-1]), "user": "root", "login": ""}
    records = [{**record, **measured.get(address, {})} for address, record in seen.items()]
    declared = judge.Known("node1", "10.77.0.11", (MAC,), "S1")
    new = {one["address"]: one["refused"] for one in judge.judge(records, [declared])["new"]}

    assert new == {
        pooled(seen)["address"]: "",
        "10.77.0.66": "it has the host key of node1 and another serial, so its disk is a copy",
        "10.77.0.77": "",
    }
