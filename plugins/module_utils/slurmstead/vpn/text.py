# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The texts for wg, nft and a computer outside."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ansible.module_utils.slurmstead.nftables import transaction

if TYPE_CHECKING:  # It needs PyYAML, which a machine need not have.
    from ansible.module_utils.slurmstead.vpn.peers import Peer

INTERFACE = "stead-vpn"
FAMILY, NAME = "inet", "slurmstead_vpn"


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


_ENDPOINT = re.compile(
    r"(?P<host>[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[(?P<v6>[0-9A-Fa-f:.]+)\])(:(?P<port>[0-9]{1,5}))?"
)


def endpoint(place: str, port: int) -> str:
    """Return where computers outside reach the VPN, with a port.

    :param place: an address or name; its own port wins
    :raises ValueError: it is not one

    >>> endpoint("home.example.org", 51820), endpoint("[2001:db8::1]", 51820), endpoint("198.51.100.7:443", 51820)
    ('home.example.org:51820', '[2001:db8::1]:51820', '198.51.100.7:443')
    """
    found = _ENDPOINT.fullmatch(place)
    if found is None or not 1 <= int(found["port"] or port) <= 65535:
        raise ValueError(f"{place} is not an address or name")
    if found["v6"]:
        ipaddress.IPv6Address(found["v6"])
    elif found["host"].replace(".", "").isdigit():
        ipaddress.IPv4Address(found["host"])
    return f"{found['host']}:{found['port'] or port}"


def configuration(private: str, address: str, control: str, place: str, network: str) -> str:
    """Return the configuration of a computer outside, for wg-quick and the WireGuard app.

    :param control: its public key
    :param place: its address or name outside, with a port
    """
    # Only packets for control go through the VPN. The keepalive keeps a house's router from forgetting the connection.
    return (
        f"[Interface]\nPrivateKey = {private}\nAddress = {address}/32\n\n"
        f"[Peer]\nPublicKey = {control}\nEndpoint = {place}\n"
        f"AllowedIPs = {own_address(network).partition('/')[0]}/32\nPersistentKeepalive = 25\n"
    )


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
    return transaction.text(FAMILY, NAME, chains)


def handshakes(said: str, now: float) -> dict[str, int]:
    r"""Return the seconds since the last handshake by public key, from `wg show … latest-handshakes`; -1 without one.

    >>> handshakes("abc=\t100\ndef=\t0\n", 160.0)
    {'abc=': 60, 'def=': -1}
    """
    found = (line.split("\t") for line in said.splitlines())
    return {key: int(now) - int(at) if int(at) else -1 for key, at in found}
