# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The text of our table, for `nft --file`."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable, Sequence

from ansible.module_utils.slurmstead.nftables import transaction

FAMILY, NAME = "inet", "slurmstead"

VPN = "stead-vpn"
"""The interface of the VPN, as in vpn.text."""

REPLACE = transaction.removal(FAMILY, NAME)
"""The lines that remove the table."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclasses.dataclass(frozen=True)
class Openings:
    """What a machine accepts from outside."""

    cluster: Sequence[str]
    """addresses of the cluster's machines, from which everything is accepted"""
    ssh_ports: Sequence[int] = (22,)
    ssh_from: Sequence[str] = ()
    """addresses and networks that may use ssh; all if it is empty"""
    tcp: Sequence[int] = ()
    udp: Sequence[int] = ()
    interfaces: Sequence[str] = ()
    """names of interfaces from which everything is accepted; `virbr*` matches all that begin like that"""
    inside: Sequence[str] = ()
    """interfaces of a router's inside network, whose machines need DHCP, DNS and the time before they are known"""
    vpn: Sequence[int] = ()
    """TCP ports for the peers of the VPN, whose own table admits nothing else"""
    slurm: Sequence[str] = ()
    """ports of Slurm's daemons, such as `6818` or `6817-6820`"""
    daemons: Sequence[int] = (0,)
    """numeric IDs of the users of these daemons"""


def text(openings: Openings) -> str:
    """Return the transaction that replaces the table.

    :raises ValueError: an address or network is not one
    """
    sets = "".join(_sets("cluster", openings.cluster) + _sets("ssh", openings.ssh_from))
    chains = {"input": ["type filter hook input priority filter; policy drop;", "", *_rules(openings)]}
    if openings.slurm:
        chains["output"] = ["type filter hook output priority filter; policy accept;", "", *_answers(openings)]
    return transaction.text(FAMILY, NAME, chains, sets)


def _rules(openings: Openings) -> list[str]:
    ssh = f"tcp dport {_one_of(map(str, sorted(openings.ssh_ports)))} accept"
    return [
        'iifname "lo" accept',
        *(f'iifname "{name}" accept' for name in openings.interfaces),
        *_from("cluster", openings.cluster, "accept"),
        *(f'iifname "{name}" udp dport {{ 53, 67, 123 }} accept' for name in openings.inside),
        *(f'iifname "{name}" tcp dport 53 accept' for name in openings.inside),
        "",
        "ct state established,related accept",
        "# Connections that are older than the table: without SYN, nothing can open a new one.",
        "tcp flags & (syn | ack) == ack accept",
        "# ICMP, IGMP and ICMPv6. nft knows names of protocols only if the package netbase is installed.",
        "meta l4proto { 1, 2, 58 } accept",
        "# Answers to DHCP, and questions for .local names, come from addresses that conntrack does not expect.",
        "udp sport 67 udp dport 68 accept",
        "ip6 saddr fe80::/10 udp dport 546 accept",
        "ip daddr 224.0.0.251 udp dport 5353 accept",
        "ip6 daddr ff02::fb udp dport 5353 accept",
        "",
        *([f'iifname "{VPN}" tcp dport {_one_of(map(str, sorted(set(openings.vpn))))} accept'] if openings.vpn else []),
        *(_from("ssh", openings.ssh_from, ssh) if openings.ssh_from else [ssh]),
        *(f"{kind} dport {_one_of(map(str, ports))} accept" for kind, ports in _ports(openings)),
        "counter",
    ]


def _answers(openings: Openings) -> list[str]:
    ports = sorted({number for port in openings.slurm for number in _range(port)})
    return [
        "# Any user may listen on these ports while a daemon is stopped. From a slurmctld of a user, slurmd would take",
        "# its configuration, with programs that root runs. Packets of no process, such as those with SYN cookies,",
        "# begin no connection either.",
        "meta l4proto != tcp accept",
        f"tcp sport != {_one_of(map(str, ports))} accept",
        "tcp flags & syn == 0 accept",
        f"meta skuid {_one_of(map(str, sorted(set(openings.daemons))))} accept",
        "counter drop",
    ]


def _range(port: str) -> range:
    first, dash, last = port.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not dash)):
        raise ValueError(f"slurm_config: {port!r} is not a port of Slurm; use a number, or two as in 6817-6820")
    return range(int(first), int(last or first) + 1)


def _ports(openings: Openings) -> Iterable[tuple[str, list[int]]]:
    return ((kind, sorted(set(ports))) for kind, ports in (("tcp", openings.tcp), ("udp", openings.udp)) if ports)


def _one_of(words: Iterable[str]) -> str:
    """Return a value, or a set of several.

    >>> _one_of(["22"]), _one_of(["22", "2222"])
    ('22', '{ 22, 2222 }')
    """
    several = list(words)
    return several[0] if len(several) == 1 else f"{{ {', '.join(several)} }}"


def _from(name: str, places: Iterable[str], rule: str) -> list[str]:
    """Return a rule for packets from the sets of a name, one for each version of IP that has such a set."""
    words = {4: "ip", 6: "ip6"}
    return [f"{words[version]} saddr @{name}{version} {rule}" for version in sorted(_by_version(places))]


def _sets(name: str, places: Iterable[str]) -> list[str]:
    words = {4: "ipv4_addr", 6: "ipv6_addr"}
    return [
        f"    set {name}{version} {{\n        type {words[version]}\n        flags interval\n        auto-merge\n"
        f"        elements = {{ {', '.join(_shown(network) for network in networks)} }}\n    }}\n"
        for version, networks in sorted(_by_version(places).items())
    ]


def _by_version(places: Iterable[str]) -> dict[int, list[Network]]:
    found: dict[int, list[Network]] = {}
    for network in {ipaddress.ip_network(place, strict=False) for place in places}:
        found.setdefault(network.version, []).append(network)
    return {version: sorted(networks, key=str) for version, networks in found.items()}


def _shown(network: Network) -> str:
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def contains(places: Iterable[str], address: str) -> bool:
    """Return whether an address is one of the places or in one of them.

    >>> contains(["192.168.1.0/24", "fd00::7"], "192.168.1.9"), contains(["192.168.1.0/24"], "fd00::7")
    (True, False)
    """
    return any(ipaddress.ip_address(address) in ipaddress.ip_network(place, strict=False) for place in places)
