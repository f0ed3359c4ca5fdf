# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the addresses of hosts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, shown

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def address_is_usable(os_address: str) -> Iterator[Violation]:
    """Other nodes must reach this node at its address: not loopback (Debian's 127.0.1.1), multicast or unspecified."""
    try:
        address = ipaddress.ip_address(os_address)
    except ValueError:
        yield "os_address", f"is {shown(os_address)}, which is not an IP address", "Write it as in 192.168.1.11"
        return
    if address.is_loopback:
        yield (
            "os_address",
            f"is {address}, which other nodes cannot reach",
            "Write its address in the cluster's network",
        )
    elif address.is_multicast or address.is_unspecified or address.is_link_local:
        yield (
            "os_address",
            f"is {address}, which cannot be a node's address",
            "Write its address in the cluster's network",
        )


def addresses_differ(os_address: Mapping[str, str]) -> Iterator[HostViolation]:
    """Two nodes cannot have the same address."""
    for address, hosts in hosts_by(os_address, _address).items():
        if len(hosts) > 1:
            yield hosts, "os_address", f"is {address} on {len(hosts)} hosts", "Give each host its own address"


def connections_differ(ansible_host: Mapping[str, str], ansible_port: Mapping[str, int]) -> Iterator[HostViolation]:
    """Two names for one machine would create two nodes."""
    ports = {host: f"{_address(name)} port {ansible_port.get(host, 22)}" for host, name in ansible_host.items()}
    for place, hosts in hosts_by(ports, str).items():
        if len(hosts) > 1:
            yield hosts, "ansible_host", f"is {place} on {len(hosts)} hosts", "Give each host its own address"


def _address(text: str) -> str:
    """One spelling of an address: fd00::1 and FD00:0::1 are the same. Other texts stay unchanged."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text.lower()


def hosts_by(values: Mapping[str, Any], key: Callable[[Any], str]) -> dict[str, tuple[str, ...]]:
    """The hosts of each value, in one spelling."""
    hosts: dict[str, tuple[str, ...]] = {}
    for host, value in values.items():
        hosts[key(value)] = (*hosts.get(key(value), ()), host)
    return hosts
