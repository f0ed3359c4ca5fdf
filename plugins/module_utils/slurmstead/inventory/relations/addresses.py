# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the addresses of hosts."""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, shown

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def address_is_usable(os_address: str) -> Iterator[Violation]:
    """Other nodes must reach this node at its address, of IPv4: not loopback (Debian's 127.0.1.1) or multicast."""
    try:
        address = ipaddress.IPv4Address(os_address)
    except ValueError:
        yield "os_address", f"is {shown(os_address)}, which is not an IPv4 address", "Write it as in 192.168.1.11"
        return
    if address.is_loopback:
        yield (
            "os_address",
            f"is {address}, which other nodes cannot reach",
            "Write its address in the cluster's network",
        )
    elif address.is_multicast or address.is_unspecified or address.is_link_local or address.is_reserved:
        yield (
            "os_address",
            f"is {os_address}, which cannot be a node's address",
            "Write its address in the cluster's network",
        )


def addresses_differ(os_address: Mapping[str, str]) -> Iterator[HostViolation]:
    """Two nodes cannot have the same address."""
    yield from used_twice("os_address", os_address, "Give each host its own address", _address)


def connections_differ(ansible_host: Mapping[str, str], ansible_port: Mapping[str, int]) -> Iterator[HostViolation]:
    """Two names for one machine would create two nodes."""
    ports = {host: f"{_address(str(name))} port {ansible_port.get(host, 22)}" for host, name in ansible_host.items()}
    yield from used_twice("ansible_host", ports, "Give each host its own address")


def _address(text: str) -> str:
    """One spelling of an address: fd00::1 and FD00:0::1 are the same. Other texts stay unchanged."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text.lower()


def used_twice(
    variable: str, values: Mapping[str, Any], advice: str, spelling: Callable[[Any], str] = str
) -> Iterator[HostViolation]:
    """Yield the values, in one spelling, that several hosts have."""
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for host, value in values.items():
        holders[spelling(value)].append(host)
    for text, hosts in holders.items():
        if len(hosts) > 1:
            yield tuple(hosts), variable, f"is {text} on {len(hosts)} hosts", advice
