# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The text of dnsmasq's configuration: leases and names of the inside."""

from __future__ import annotations

import ipaddress

from ansible.module_utils.slurmstead.network.plan import Inside

LEASE = "12h"


def text(inside: Inside) -> str:
    """Return the configuration."""
    network = ipaddress.ip_network(inside.network)
    start = inside.pool[0] if inside.pool else str(network.network_address)
    end = f"{inside.pool[1]}," if inside.pool else "static,"
    lines = [
        "# The interface may appear after dnsmasq has started, and nothing listens on others.",
        f"interface={inside.interface}",
        "except-interface=lo",
        "bind-dynamic",
        "user=dnsmasq",
        "no-hosts",
        "domain-needed",
        "bogus-priv",
        f"domain={inside.domain}",
        f"local=/{inside.domain}/",
        "dhcp-authoritative",
        "dhcp-leasefile=/var/lib/misc/slurmstead.leases",
        f"dhcp-range={start},{end}{network.netmask},{LEASE}",
        f"dhcp-option=option:router,{inside.address}",
        f"dhcp-option=option:dns-server,{inside.address}",
        f"dhcp-option=option:ntp-server,{inside.address}",
    ]
    for host in sorted(inside.hosts, key=lambda host: host.name):
        lines.append(f"host-record={host.name},{host.name}.{inside.domain},{host.address}")
        if host.mac:
            lines.append(f"dhcp-host={host.mac.lower().replace('-', ':')},{host.address},{host.name}")
    return "\n".join(lines) + "\n"
