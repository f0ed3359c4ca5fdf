# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The texts for wg and nft."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from ansible.module_utils.slurmstead.vpn.peers import Peer

INTERFACE = "stead-vpn"
FAMILY, NAME = "inet", "slurmstead_vpn"
REPLACE = f"table {FAMILY} {NAME}\ndelete table {FAMILY} {NAME}\n"


def own_address(network: str) -> str:
    """Return control's address with the length of its prefix: the first of the network.

    >>> own_address("10.79.0.0/24")
    '10.79.0.1/24'
    """
    own = ipaddress.IPv4Network(network)
    return f"{own[1]}/{own.prefixlen}"


def peers(listed: Iterable[Peer], port: int) -> str:
    """Return what `wg syncconf` reads, without the private key. Each peer may use its own address only."""
    parts = [f"ListenPort = {port}\n"]
    for peer in sorted(listed, key=lambda one: one.name):
        parts.append(f"# {peer.name}\n[Peer]\nPublicKey = {peer.key}\nAllowedIPs = {peer.address}/32\n")
    return "\n".join(parts)


def table(network: str, ports: Sequence[int]) -> str:
    """Return the transaction that replaces the table: peers reach these ports of control and nothing else."""
    opened = ", ".join(map(str, sorted(set(ports))))
    chains = {
        "prerouting": [
            "type filter hook prerouting priority raw; policy accept;",
            "# Nobody outside the VPN may claim an address of it.",
            f'iifname != {{ "{INTERFACE}", "lo" }} ip saddr {network} counter drop',
        ],
        "input": [
            "type filter hook input priority filter - 1; policy accept;",
            f'iifname != "{INTERFACE}" accept',
            "ct state established,related accept",
            "icmp type echo-request accept",
            *([f"tcp dport {{ {opened} }} accept"] if opened else []),
            "counter drop",
        ],
        "forward": [
            "type filter hook forward priority filter - 1; policy accept;",
            f'iifname "{INTERFACE}" counter drop',
            f'oifname "{INTERFACE}" counter drop',
        ],
    }
    body = "".join(
        f"    chain {chain} {{\n" + "".join(f"        {line}\n" for line in lines) + "    }\n"
        for chain, lines in chains.items()
    )
    return f"{REPLACE}table {FAMILY} {NAME} {{\n{body}}}\n"
