# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for what the firewall accepts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from ansible.module_utils.slurmstead.inventory.model import Violation, shown

INTERFACE = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}"

SHORTEST = 30
"""Seconds that a machine may need to answer a new connection."""


def ssh_comes_from_networks(firewall_ssh_from: Sequence[str]) -> Iterator[Violation]:
    """Each place that may use ssh is an address or a network; a network has no bits beyond its length."""
    for place in firewall_ssh_from:
        try:
            ipaddress.ip_network(place)
        except ValueError as error:
            yield (
                "firewall_ssh_from",
                f"has {shown(place)}, which is not an address or a network ({error})",
                "Write it as in 192.168.1.11 or 192.168.1.0/24",
            )


def tcp_ports_are_possible(os_open_ports: Sequence[int]) -> Iterator[Violation]:
    """TCP ports are from 1 to 65535."""
    yield from wrong_ports("os_open_ports", os_open_ports)


def udp_ports_are_possible(firewall_open_udp_ports: Sequence[int]) -> Iterator[Violation]:
    """UDP ports are from 1 to 65535."""
    yield from wrong_ports("firewall_open_udp_ports", firewall_open_udp_ports)


def wrong_ports(variable: str, ports: Sequence[int]) -> Iterator[Violation]:
    """Yield what is not a port in a variable."""
    for port in ports:
        if not 1 <= port <= 65535:
            yield variable, f"has {port}, which is not a port", "Write a number from 1 to 65535"


def interfaces_have_possible_names(firewall_open_interfaces: Sequence[str]) -> Iterator[Violation]:
    """A name fits into the kernel's 15 characters and says which interfaces it means: `*` alone would be all."""
    for name in firewall_open_interfaces:
        if not re.fullmatch(rf"{INTERFACE}\*?", name):
            yield (
                "firewall_open_interfaces",
                f"has {shown(name)}, which is not the name of an interface",
                "Write one as in docker0, or the beginning of several, as in virbr*",
            )


def deadline_is_sufficient(firewall_deadline: int) -> Iterator[Violation]:
    """A machine can answer before its previous firewall is restored."""
    if firewall_deadline < SHORTEST:
        yield (
            "firewall_deadline",
            f"is {firewall_deadline}, too short for a new connection to a slow machine",
            f"Write at least {SHORTEST} (seconds)",
        )
