# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What control already knows: leases of dnsmasq, neighbours of the kernel, its own networks, the makers of cards."""

from __future__ import annotations

import csv
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

LEASES = Path("/var/lib/misc/slurmstead.leases")
"""dhcp-leasefile of the role router."""

MAKERS = Path("/usr/share/ieee-data")
"""Of Debian's package ieee-data, which the role router installs."""

REGISTRIES = {"oui36.csv": 9, "mam.csv": 7, "oui.csv": 6}
"""Files of MAKERS, each with the length of its prefixes in hexadecimal digits; the longest prefix counts."""


class Lease(NamedTuple):
    """An address that dnsmasq gave to a card; the name is what the machine called itself."""

    mac: str
    name: str


def leases(text: str) -> dict[str, Lease]:
    """Return the IPv4 leases by address.

    >>> leases("1764100000 52:54:00:00:00:0c 10.77.0.203 debian 01:52:54\\nduid 00:01\\n")
    {'10.77.0.203': Lease(mac='52:54:00:00:00:0c', name='debian')}
    """
    found = {}
    for fields in map(str.split, text.splitlines()):
        if fields[:1] == ["duid"]:
            break  # leases of DHCPv6 follow
        if len(fields) >= 4:
            found[fields[2]] = Lease(fields[1].lower(), "" if fields[3] == "*" else fields[3])
    return found


def neighbours(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the MACs of IPv4 neighbours by address, from `ip -json -4 neighbour`.

    >>> neighbours([{"dst": "10.0.0.2", "lladdr": "52:54:00:00:00:02", "state": ["STALE"]},
    ...             {"dst": "10.0.0.3", "state": ["FAILED"]}])
    {'10.0.0.2': '52:54:00:00:00:02'}
    """
    known = (entry for entry in entries if entry.get("lladdr") and "FAILED" not in entry.get("state", ()))
    return {str(entry["dst"]): str(entry["lladdr"]).lower() for entry in known}


def own_networks(links: Iterable[Mapping[str, Any]], wanted: Sequence[str]) -> dict[str, str]:
    """Return this machine's networks that share an address with `wanted`, each with this machine's address in it.

    :param links: from `ip -json -4 address`

    >>> links = [{"local": "10.0.0.1", "prefixlen": 24}, {"local": "172.17.0.1", "prefixlen": 16}]
    >>> own_networks([{"addr_info": links}], ["10.0.0.1"])
    {'10.0.0.0/24': '10.0.0.1'}
    """
    asked = [ipaddress.ip_network(one, strict=False) for one in wanted]
    own = {
        ipaddress.ip_network(f"{one['local']}/{one['prefixlen']}", strict=False): str(one["local"])
        for link in links
        for one in link.get("addr_info", ())
    }
    return {str(network): address for network, address in own.items() if any(map(network.overlaps, asked))}


def makers(macs: Iterable[str], directory: Path = MAKERS) -> dict[str, str]:
    """Return the maker of each card by MAC, as far as the files know it."""
    digits = {mac: mac.replace(":", "").upper() for mac in macs}
    found: dict[str, str] = {}
    for name, length in REGISTRIES.items():
        wanted = {text[:length] for mac, text in digits.items() if mac not in found}
        rows = _rows(directory / name, wanted)
        found |= {
            mac: rows[text[:length]] for mac, text in digits.items() if mac not in found and text[:length] in rows
        }
    local = {mac: "no maker: chosen by software" for mac, text in digits.items() if int(text[1], 16) & 2}
    return {**local, **found}


def _rows(path: Path, wanted: set[str]) -> dict[str, str]:
    try:
        with path.open(newline="", errors="replace") as file:
            # "IEEE Registration Authority" owns the prefixes whose parts the other files list.
            return {row[1]: row[2].strip() for row in csv.reader(file) if len(row) > 2 and row[1] in wanted}
    except OSError:
        return {}
