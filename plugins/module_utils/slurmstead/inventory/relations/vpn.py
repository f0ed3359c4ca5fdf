# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the VPN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible.module_utils.slurmstead.inventory.model import Violation, shown
from ansible.module_utils.slurmstead.inventory.relations.firewall import wrong_ports
from ansible.module_utils.slurmstead.inventory.relations.network import ipv4_network
from ansible.module_utils.slurmstead.network.plan import overlap
from ansible.module_utils.slurmstead.vpn import text


def the_vpn_has_a_network_of_its_own(
    vpn_enabled: bool, vpn_network: str, router_network: str, router_bmc_network: str, os_address: str
) -> Iterator[Violation]:
    """The VPN shares no address with the cluster's networks."""
    if not vpn_enabled:
        return
    if ipv4_network(vpn_network) is None:
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
    yield from wrong_ports("vpn_port", [vpn_port])
    yield from wrong_ports("vpn_tcp_ports", vpn_tcp_ports)


def the_vpn_is_reached_somewhere(vpn_endpoint: str) -> Iterator[Violation]:
    """The VPN's place outside, if it is set, is an address or a name."""
    try:
        text.endpoint(vpn_endpoint or "none", 1)
    except ValueError:
        yield (
            "vpn_endpoint",
            f"is {shown(vpn_endpoint)}, which is not an address or name",
            "Write it as in home.example.org or 198.51.100.7, and :PORT after it if the house forwards another port",
        )
