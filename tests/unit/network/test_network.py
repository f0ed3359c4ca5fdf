"""The inside network's texts, the refusals, and the packets of DHCP."""

from __future__ import annotations

import pathlib
import struct
from typing import Any

import pytest

from ansible.module_utils.slurmstead.network import dhcp, dnsmasq, plan, table
from ansible.module_utils.slurmstead.network.plan import Host, Inside

INSIDE = Inside(
    interface="in0",
    network="10.77.0.0/24",
    address="10.77.0.1",
    bmc_network="10.78.0.0/24",
    hosts=(Host("node2", "10.77.0.12"), Host("node1", "10.77.0.11", "52:54:00:00:00:AA")),
)


def link(name: str, *addresses: str) -> dict[str, Any]:
    pairs = [one.split("/") for one in addresses]
    return {"ifname": name, "addr_info": [{"family": "inet", "local": a, "prefixlen": int(n)} for a, n in pairs]}


GOOD = [link("lo", "127.0.0.1/8"), link("in0", "10.77.0.1/24"), link("out0", "192.168.1.7/24")]


def test_a_router_of_two_networks_that_are_apart_is_accepted() -> None:
    assert plan.refusal(GOOD, "in0", "10.77.0.0/24", "10.77.0.1", "10.78.0.0/24") == ""


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ([link("out0", "192.168.1.7/24")], "router_interface is in0, which this machine does not have. It has out0"),
        ([link("in0"), link("out0")], "has no IPv4 address, not 10.77.0.1"),
        ([*GOOD[:2], link("out0", "10.77.0.9/16")], "10.77.0.0/24 (router_network) overlaps 10.77.0.0/16 on out0"),
        ([*GOOD, link("x0", "10.78.0.9/25")], "10.78.0.0/24 (router_bmc_network) overlaps 10.78.0.0/25 on x0"),
    ],
    ids=["no interface", "no address", "outside overlaps", "BMCs overlap"],
)
def test_what_cannot_be_a_router_is_refused_with_its_reason(links: list[dict[str, Any]], words: str) -> None:
    assert words in plan.refusal(links, "in0", "10.77.0.0/24", "10.77.0.1", "10.78.0.0/24")


def test_a_machine_with_a_mac_gets_its_address_and_all_have_names() -> None:
    lines = dnsmasq.text(INSIDE).splitlines()

    assert "dhcp-host=52:54:00:00:00:aa,10.77.0.11,node1" in lines
    assert "host-record=node2,node2.cluster,10.77.0.12" in lines
    assert "dhcp-range=10.77.0.0,static,255.255.255.0,12h" in lines


def test_the_lease_of_an_address_that_is_another_cards_now_is_forgotten(tmp_path: pathlib.Path) -> None:
    conf, leases = tmp_path / "dnsmasq.conf", tmp_path / "leases"
    conf.write_text(dnsmasq.text(INSIDE).replace("/var/lib/misc/slurmstead.leases", str(leases)))
    dhcp.forget(conf)
    kept = [
        "1764100000 52:54:00:00:00:aa 10.77.0.11 node1 *\n",
        "1764100000 52:54:00:00:00:0c 10.77.0.203 debian *\n",
        "duid 00:01\n",
    ]
    leases.write_text("".join(["1764100000 52:54:00:00:00:0b 10.77.0.11 old *\n", *kept]))
    dhcp.forget(conf)

    assert leases.read_text() == "".join(kept)


def test_the_table_names_no_outside() -> None:
    text = table.text(INSIDE)

    assert 'oifname != { "in0", "lo" } ip saddr 10.77.0.0/24 masquerade' in text
    assert "ip daddr 10.78.0.0/24 counter drop" in text
    assert "flush" not in text


def offer(xid: int, kind: int = dhcp.OFFER, server: bytes = bytes([10, 0, 0, 9])) -> bytes:
    question = bytearray(dhcp.discover(xid, b"abcdef")[:236])
    question[0] = dhcp.BOOTREPLY
    return bytes(question) + dhcp.COOKIE + struct.pack("!BBB", 53, 1, kind) + bytes([0, 54, len(server)]) + server


def test_an_offer_names_its_server() -> None:
    assert dhcp.server_of(offer(7), 7) == "10.0.0.9"


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        dhcp.discover(7, b"abcdef"),
        offer(8),
        offer(7, kind=5),
        offer(7, server=b"x"),
        offer(7)[:-2],
        offer(7)[:238],
    ],
    ids=["nothing", "question", "other question", "ack", "bad server", "cut option", "cut cookie"],
)
def test_what_is_not_an_offer_to_this_question_names_none(packet: bytes) -> None:
    assert dhcp.server_of(packet, 7) == ""
