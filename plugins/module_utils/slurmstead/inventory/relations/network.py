# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the inside network of a router."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, shown
from ansible.module_utils.slurmstead.inventory.relations.addresses import HOST_NAME, used_twice
from ansible.module_utils.slurmstead.inventory.relations.firewall import INTERFACE
from ansible.module_utils.slurmstead.network.plan import MAC, overlap
from ansible.module_utils.slurmstead.slurm.hostlist import compress


def ipv4_network(text: str) -> ipaddress.IPv4Network | None:
    """Return the IPv4 network with this text; None if it is not one, or has no addresses for two machines."""
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        return None
    return network if network.num_addresses >= 4 else None


def _contains(network: ipaddress.IPv4Network, address: str) -> bool:
    """Return whether a network contains an address; another rule reports what is not an address."""
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return True


def the_inside_is_a_network(
    router_interface: str, router_network: str, os_address: str, control_names: Sequence[str]
) -> Iterator[Violation]:
    """A router has a network that contains its own address."""
    if not router_interface:
        return
    network = ipv4_network(router_network)
    if network is None:
        yield (
            "router_network",
            f"is {shown(router_network)}, which is not an IPv4 network",
            "Write the network behind router_interface, as in 10.77.0.0/24",
        )
    elif not _contains(network, os_address):
        yield (
            "router_network",
            f"is {router_network}, which does not contain os_address ({os_address})",
            f"Give {', '.join(control_names)} its address on router_interface as os_address",
        )


def the_pool_is_inside(router_network: str, router_pool: Sequence[str]) -> Iterator[Violation]:
    """The pool has a first and a last address of the network."""
    network = ipv4_network(router_network)
    if not router_pool or network is None:
        return
    try:
        first, last = (ipaddress.IPv4Address(one) for one in router_pool)
        good = first <= last and first in network and last in network
    except ValueError:
        good = False
    if not good:
        yield (
            "router_pool",
            f"is {shown(list(router_pool))}, which is not the first and the last address of a part of {router_network}",
            f"Write two addresses, as in [{network[1]}, {network[-2]}]",
        )


def the_bmcs_are_apart(router_network: str, router_bmc_network: str) -> Iterator[Violation]:
    """The BMCs have a network that shares no address with the inside."""
    if not router_bmc_network:
        return
    if ipv4_network(router_bmc_network) is None:
        yield (
            "router_bmc_network",
            f"is {shown(router_bmc_network)}, which is not an IPv4 network",
            "Write it as in 10.78.0.0/24",
        )
    elif ipv4_network(router_network) is not None and overlap(router_bmc_network, [router_network]):
        yield (
            "router_bmc_network",
            f"is {router_bmc_network}, which overlaps router_network ({router_network})",
            "Give the BMCs a network of their own",
        )


def the_inside_has_names(router_interface: str, router_domain: str) -> Iterator[Violation]:
    """An interface and a domain have names that the kernel and DNS accept."""
    if router_interface and not re.fullmatch(INTERFACE, router_interface):
        yield (
            "router_interface",
            f"is {shown(router_interface)}, which is not the name of an interface",
            "Write one that `ip link` shows on control, as in enp2s0",
        )
    if not HOST_NAME.fullmatch(router_domain):
        yield (
            "router_domain",
            f"is {shown(router_domain)}, which is not the name of a domain",
            "Write letters, digits, - and dots, as in cluster or home.arpa",
        )


def the_pool_is_free(
    router_pool: Mapping[str, Sequence[str]], os_address: Mapping[str, str]
) -> Iterator[HostViolation]:
    """DHCP gives no unknown machine an address that the inventory gives to another."""
    for router, pool in router_pool.items():
        try:
            first, last = (ipaddress.IPv4Address(one) for one in pool)
        except ValueError:
            continue
        inside = [host for host, address in os_address.items() if _is_between(first, address, last)]
        if inside:
            wrong = f"is {first} to {last}, which contains the os_address of {compress(inside)}"
            yield (router,), "router_pool", wrong, "Choose addresses that no machine of the inventory has"


def _is_between(first: ipaddress.IPv4Address, address: str, last: ipaddress.IPv4Address) -> bool:
    try:
        return first <= ipaddress.IPv4Address(address) <= last
    except ValueError:
        return False


def macs_differ(router_mac: Mapping[str, str], power_mac: Mapping[str, str]) -> Iterator[HostViolation]:
    """Two machines with one MAC would get one address, and a magic packet would wake the wrong one."""
    for variable, macs in (("router_mac", router_mac), ("power_mac", power_mac)):
        known = {host: mac.lower().replace("-", ":") for host, mac in macs.items() if mac}
        yield from used_twice(variable, known, "Give each host that of its own network card")


def macs_are_inside(
    router_mac: Mapping[str, str],
    router_interface: Mapping[str, str],
    router_network: Mapping[str, str],
    os_address: Mapping[str, str],
    control_names: Sequence[str],
) -> Iterator[HostViolation]:
    """A router gives addresses of its own network only."""
    for control in control_names[:1]:
        network = ipv4_network(router_network.get(control, "")) if router_interface.get(control) else None
        addresses = {host: os_address.get(host, "") for host, mac in router_mac.items() if mac}
        for host, address in addresses.items():
            if network and not _contains(network, address):
                wrong = f"is set, but os_address ({address}) is not in router_network ({network}) of {control}"
                yield (host,), "router_mac", wrong, "Correct os_address, or remove router_mac"


def macs_are_macs(router_mac: str) -> Iterator[Violation]:
    """A MAC has six bytes."""
    if router_mac and not MAC.fullmatch(router_mac):
        yield (
            "router_mac",
            f"is {shown(router_mac)}, which is not a MAC",
            'Write it as in "52:54:00:12:34:56", with the quotes: YAML reads some as numbers',
        )
