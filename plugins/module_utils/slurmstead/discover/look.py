# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What answers in the networks of control, on control itself."""

from __future__ import annotations

import concurrent.futures
import ipaddress
import json
from collections.abc import Sequence
from typing import Any

from ansible.module_utils.slurmstead.discover import probe, sources
from ansible.module_utils.slurmstead.reach.commands import run

LARGEST = 512
"""Addresses of a network that is asked one by one: the kernel remembers at most 1024 neighbours."""


def look(addresses: Sequence[str], networks: Sequence[str]) -> dict[str, Any]:
    """Return `records`, one for each address in use besides this machine's own, and `notes` for the operator.

    :param addresses: of this machine in the cluster's network
    :param networks: more networks in which to look, if this machine is in them
    """
    own = sources.own_networks(_ip("address"), [*addresses, *networks])
    notes = [] if own else [f"this machine has no IPv4 network with {', '.join([*addresses, *networks])}"]
    for network in own:
        if ipaddress.ip_network(network).num_addresses > LARGEST:
            notes.append(f"{network} is too large to ask each address; only known neighbours and leases are listed")
        else:
            probe.sweep(network)
    leased = sources.leases(sources.LEASES.read_text(errors="replace") if sources.LEASES.exists() else "")
    macs = {address: lease.mac for address, lease in leased.items()} | sources.neighbours(_ip("neighbour"))
    inside = sorted(
        (address for address in macs if address not in own.values() and _is_in(address, own)),
        key=ipaddress.ip_address,
    )
    return {"records": _records(inside, macs, leased), "notes": notes}


def _records(inside: list[str], macs: dict[str, str], leased: dict[str, sources.Lease]) -> list[dict[str, Any]]:
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        banners = dict(zip(inside, pool.map(probe.banner, inside), strict=True))
        devices = dict(zip(inside, pool.map(probe.web_bmc, inside), strict=True))
    speak_ipmi = probe.ipmi(inside)
    keys = probe.host_keys([address for address in inside if banners[address]])
    makers = sources.makers(macs[address] for address in inside)
    return [
        {
            "address": address,
            "mac": macs[address],
            "maker": makers.get(macs[address], ""),
            "name": leased[address].name if address in leased else "",
            "banner": banners[address],
            "host_keys": keys.get(address, []),
            "bmc": devices[address] or ("ipmi" if address in speak_ipmi else ""),
        }
        for address in inside
    ]


def _is_in(address: str, networks: dict[str, str]) -> bool:
    return any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in networks)


def _ip(what: str) -> list[dict[str, Any]]:
    code, out, err = run("ip", "-json", "-4", what)
    if code:
        raise RuntimeError(f"`ip -json -4 {what}` failed: {err.strip()}")
    found: list[dict[str, Any]] = json.loads(out)
    return found
