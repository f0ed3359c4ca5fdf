# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The addresses of the inside network, and which networks overlap."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")


@dataclasses.dataclass(frozen=True)
class Host:
    """A machine of the inside network; without a MAC it has a name and no lease."""

    name: str
    address: str
    mac: str = ""


@dataclasses.dataclass(frozen=True)
class Inside:
    """The inside network, as the variables of the role describe it."""

    interface: str
    network: str
    """as in 10.0.0.0/24"""
    address: str
    """of the router, on the interface"""
    domain: str = "cluster"
    pool: Sequence[str] = ()
    """first and last address for machines without a lease of their own; they get none if it is empty"""
    bmc_network: str = ""
    """that only the router itself may use"""
    hosts: Sequence[Host] = ()


def inside(options: Mapping[str, Any]) -> Inside:
    """Return the network that the options of the role describe."""
    hosts = tuple(Host(**one) for one in options["hosts"])
    return Inside(**{**options, "hosts": hosts})


def overlap(network: str, others: Iterable[str]) -> str:
    """Return the first of the others that shares addresses with a network; empty if none does.

    >>> overlap("192.168.1.0/24", ["10.0.0.0/8", "192.168.0.0/16"]), overlap("10.0.0.0/24", ["10.0.1.7/24"])
    ('192.168.0.0/16', '')
    """
    own = ipaddress.ip_network(network, strict=False)
    for other in others:
        if own.overlaps(ipaddress.ip_network(other, strict=False)):
            return other
    return ""


def outside_networks(interfaces: Iterable[Mapping[str, Any]], interface: str) -> dict[str, str]:
    """Return the IPv4 networks of the other interfaces, with their names, from `ip -json address`.

    >>> outside_networks([{"ifname": "eth0", "addr_info": [{"family": "inet", "local": "10.1.2.3", "prefixlen": 8}]},
    ...                   {"ifname": "lo", "addr_info": []}, {"ifname": "eth1", "addr_info": []}], "eth1")
    {'10.0.0.0/8': 'eth0'}
    """
    return {
        str(ipaddress.ip_network(f"{one['local']}/{one['prefixlen']}", strict=False)): str(link["ifname"])
        for link in interfaces
        if link.get("ifname") not in ("lo", interface, None)
        for one in link.get("addr_info", ())
        if one.get("family") == "inet"
    }


def refusal(
    interfaces: Sequence[Mapping[str, Any]], interface: str, network: str, address: str, bmc_network: str = ""
) -> str:
    """Return why this machine cannot be the router of a network; empty if it can."""
    links = {str(link.get("ifname")): link for link in interfaces}
    if interface not in links:
        return (
            f"router_interface is {interface}, which this machine does not have. It has "
            f"{', '.join(sorted(links.keys() - {'lo'})) or 'none'}; write the one to which the switch is connected"
        )
    own = [str(one["local"]) for one in links[interface].get("addr_info", ()) if one.get("family") == "inet"]
    if address not in own:
        return (
            f"{interface} (router_interface) has {', '.join(own) or 'no IPv4 address'}, not {address} (os_address). "
            f"Configure {address}/{ipaddress.ip_network(network).prefixlen} on {interface}, permanently and without a "
            "gateway, then run again"
        )
    outside = outside_networks(interfaces, interface)
    found = overlap(network, outside)
    if found:
        return (
            f"the inside network {network} (router_network) overlaps {found} on {outside[found]}, so packets cannot "
            "know where to go. Give the inside another network, such as 10.77.0.0/24"
        )
    # The BMCs may be on an interface of their own, whose network is then this one.
    found = overlap(bmc_network, (one for one in outside if one != bmc_network)) if bmc_network else ""
    if found:
        return (
            f"the BMCs' network {bmc_network} (router_bmc_network) overlaps {found} on {outside[found]}. "
            "Give the BMCs another network"
        )
    return ""
