"""The firewall of a lab: what it closes, and that no change of it locks an administrator out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS

FILE = "/etc/slurmstead/firewall.nft"
UNIT = "slurmstead-firewall.service"
LISTED = "nft --stateless list table inet slurmstead"
ROLLBACK = "systemctl is-active slurmstead-firewall-rollback.timer || true"

DEADLINE = 45

CONNECT = """
import json, socket, sys
source, target, *ports = sys.argv[1:]
seen = {}
for port in ports:
    try:
        socket.create_connection((target, int(port)), 5, (source, 0)).close()
        seen[port] = "connected"
    except OSError as error:
        seen[port] = type(error).__name__
print(json.dumps(seen))
"""


def configure(lab: Any, name: str, plain: bool = False, **variables: Any) -> Any:
    """Run the firewall's part of site.yml on one machine with other variables."""
    words = ["--limit", name, "--extra-vars", json.dumps(variables)]
    return lab.ansible(*words, str(PLAYBOOKS / "configure-firewall.yml"), plain=plain)


def state(lab: Any, name: str) -> tuple[str, str]:
    """Return the table in the kernel, and the one that the next boot loads."""
    return lab.root(name, LISTED), lab.root(name, f"cat {FILE}")


@pytest.fixture(scope="module", autouse=True)
def firewall_of_the_inventory(lab: Any) -> Iterator[None]:
    """In the end the worker has the firewall of the inventory."""
    yield
    assert configure(lab, lab.workers[-1]).code == 0


@pytest.fixture
def worker_as_found(lab: Any) -> str:
    """A worker that has the firewall of the inventory, whatever the test before it did."""
    name = str(lab.workers[-1])
    run = configure(lab, name)
    assert run.code == 0, run.output[-5000:]
    return name


REJECTED = "/run/slurmstead/firewall/rejected"
BLOCK = f"""
rm -f {REJECTED}
nft 'add table inet owner; add chain inet owner input {{ type filter hook input priority 10; }}'
uplink=$(ip -oneline address | grep -F ' 10.0.2.15/' | cut -d' ' -f2)
nft "add rule inet owner input iifname $uplink tcp flags syn drop"
systemd-run --quiet --collect --unit=owner sh -c 'seconds=0
    while [ ! -e {REJECTED} ] && [ $seconds -lt 600 ]; do sleep 1; seconds=$((seconds + 1)); done
    nft delete table inet owner'
"""
"""Lets no new connection come in until the firewall has been rolled back; nothing could end it from outside."""


@pytest.fixture
def new_connections_blocked(lab: Any, worker_as_found: str) -> Iterator[str]:
    """A worker to which no new ssh connection can be made, because of a table of its owner; existing ones go on."""
    run = configure(lab, worker_as_found, plain=True)
    assert run.code == 0, run.output[-5000:]
    lab.root(worker_as_found, BLOCK)
    yield worker_as_found
    lab.insist(worker_as_found, "! nft list table inet owner", 660)


def test_a_second_run_changes_nothing(lab: Any) -> None:
    run = lab.ansible("--tags", "firewall")

    assert run.code == 0, run.output[-5000:]
    assert run.changed == {}


def test_a_stranger_on_the_clusters_network_reaches_ssh_only(lab: Any) -> None:
    """A worker plays one, with a second address."""
    worker, network = lab.workers[0], lab.address(lab.control).rpartition(".")[0]
    interface = lab.root(worker, f"ip -oneline address | grep -F ' {lab.address(worker)}/' | cut -d' ' -f2")
    stranger = f"{network}.253"
    lab.root(worker, f"ip address add {stranger}/24 dev {interface}")
    try:
        ports = ("22", "6817")
        seen = lab.python(worker, CONNECT, stranger, lab.address(lab.control), *ports)
        own = lab.python(worker, CONNECT, lab.address(worker), lab.address(lab.control), *ports)
    finally:
        lab.root(worker, f"ip address delete {stranger}/24 dev {interface}")

    assert seen == {"22": "connected", "6817": "TimeoutError"}
    assert own == {"22": "connected", "6817": "connected"}


def test_a_table_through_which_no_new_connection_comes_is_removed_again(lab: Any, new_connections_blocked: str) -> None:
    name = new_connections_blocked
    before = state(lab, name)

    run = configure(lab, name, plain=True, os_open_ports=[8080], firewall_deadline=DEADLINE)

    assert run.code != 0
    assert f"{name} did not answer a new connection through its new firewall" in " ".join(run.output.split())
    lab.insist(name, f"test -e {REJECTED} && ! nft list table inet owner", 3 * DEADLINE)
    assert state(lab, name) == before
    assert lab.root(name, ROLLBACK) == "inactive"


def test_a_confirmed_table_stays(lab: Any, worker_as_found: str) -> None:
    run = configure(lab, worker_as_found, os_open_ports=[8080], firewall_deadline=DEADLINE)

    assert run.code == 0, run.output[-5000:]
    assert list(run.changed) == [worker_as_found]
    assert lab.root(worker_as_found, ROLLBACK) == "inactive"
    time.sleep(DEADLINE + 5)
    assert all("tcp dport 8080 accept" in text for text in state(lab, worker_as_found))


def test_a_run_that_would_lock_itself_out_is_refused(lab: Any, worker_as_found: str) -> None:
    before = state(lab, worker_as_found)

    run = configure(lab, worker_as_found, firewall_ssh_from=["192.0.2.0/24"])

    assert run.code != 0
    assert "firewall_ssh_from is 192.0.2.0/24, which excludes 10.0.2.2" in " ".join(run.output.split())
    assert state(lab, worker_as_found) == before


def test_a_table_that_its_owner_changed_is_restored(lab: Any, worker_as_found: str) -> None:
    before = state(lab, worker_as_found)
    lab.root(worker_as_found, "nft add rule inet slurmstead input tcp dport 9999 accept")

    run = configure(lab, worker_as_found)

    assert list(run.changed) == [worker_as_found]
    assert state(lab, worker_as_found) == before


@pytest.mark.parametrize("verb", ["start", "restart", "reload", "stop"])
def test_debians_own_unit_does_not_remove_it(lab: Any, worker_as_found: str, verb: str) -> None:
    """Its configuration begins with `flush ruleset`."""
    before = lab.root(worker_as_found, LISTED)
    try:
        if verb != "start":
            lab.root(worker_as_found, "systemctl start nftables.service")
        lab.root(worker_as_found, f"systemctl {verb} nftables.service")

        assert lab.root(worker_as_found, LISTED) == before
        others = lab.root(worker_as_found, "nft list tables")
        assert ("table inet filter" in others) == (verb != "stop")
    finally:
        lab.root(worker_as_found, "systemctl stop nftables.service")


def test_it_can_be_switched_off_and_on(lab: Any, worker_as_found: str) -> None:
    before = state(lab, worker_as_found)

    off = configure(lab, worker_as_found, firewall_enabled=False)
    seen = lab.root(
        worker_as_found,
        f"nft list tables; ls {FILE} /etc/systemd/system/{UNIT} /etc/systemd/system/nftables.service.d/* 2>&- || true",
    )
    again = configure(lab, worker_as_found, firewall_enabled=False)
    on = configure(lab, worker_as_found)

    assert (off.code, seen, again.changed, on.code) == (0, "", {}, 0)
    assert state(lab, worker_as_found) == before


def test_a_boot_loads_it_before_the_network(lab: Any, worker_as_found: str) -> None:
    before = state(lab, worker_as_found)
    lab.cut_power(worker_as_found)
    lab.boot(worker_as_found)

    assert state(lab, worker_as_found) == before
    show = "systemctl show --property=ActiveEnterTimestampMonotonic --value"
    loaded, network = (int(lab.root(worker_as_found, f"{show} {unit}")) for unit in (UNIT, "systemd-networkd"))
    assert 0 < loaded <= network
