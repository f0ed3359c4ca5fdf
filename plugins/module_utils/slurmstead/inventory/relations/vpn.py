# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the VPN."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from ansible.module_utils.slurmstead.inventory.model import Violation, shown
from ansible.module_utils.slurmstead.network.plan import overlap


def the_vpn_has_a_network_of_its_own(
    vpn_enabled: bool, vpn_network: str, router_network: str, router_bmc_network: str, os_address: str
) -> Iterator[Violation]:
    """The VPN shares no address with the cluster's networks."""
    if not vpn_enabled:
        return
    try:
        large_enough = ipaddress.IPv4Network(vpn_network).num_addresses >= 4
    except ValueError:
        large_enough = False
    if not large_enough:
        yield (
            "vpn_network",
            f"is {shown(vpn_network)}, which is not an IPv4 network with addresses for peers",
            "Write it as in 10.79.0.0/24",
        )
        return
    others = {"router_network": router_network, "router_bmc_network": router_bmc_network, "os_address": os_address}
    for name, other in others.items():
        try:
            found = bool(other) and overlap(vpn_network, [other])
        except ValueError:
            continue
        if found:
            yield (
                "vpn_network",
                f"is {vpn_network}, which overlaps {name} ({other})",
                "Give the VPN a network of its own",
            )
            return


def vpn_ports_are_possible(vpn_port: int, vpn_tcp_ports: Sequence[int]) -> Iterator[Violation]:
    """A port has 16 bits."""
    for name, ports in (("vpn_port", [vpn_port]), ("vpn_tcp_ports", vpn_tcp_ports)):
        for port in ports:
            if not 1 <= port <= 65535:
                yield name, f"has {port}, which is not a port", "Write a number from 1 to 65535"
