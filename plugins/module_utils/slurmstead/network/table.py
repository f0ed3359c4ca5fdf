# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The text of the router's nftables table: what it forwards, and under which address."""

from __future__ import annotations

from ansible.module_utils.slurmstead.network.plan import Inside
from ansible.module_utils.slurmstead.nftables import transaction

FAMILY, NAME = "ip", "slurmstead_router"


def text(inside: Inside) -> str:
    """Return the transaction that replaces the table.

    It names no outside interface and no outside address, so both may change, be absent at boot, or be several.
    """
    name, network, bmc = inside.interface, inside.network, inside.bmc_network
    chains = {
        "prerouting": [
            "type filter hook prerouting priority raw; policy accept;",
            "# Nobody outside may claim an address of the inside: the firewall trusts these.",
            f'iifname != {{ "{name}", "lo" }} ip saddr {network} counter drop',
        ],
        "forward": [
            "type filter hook forward priority filter; policy accept;",
            *([f"ip daddr {bmc} counter drop", f"ip saddr {bmc} counter drop"] if bmc else []),
            f'oifname "{name}" ct state established,related accept',
            f'oifname "{name}" iifname != "{name}" counter drop',
            f'iifname "{name}" ip saddr != {network} counter drop',
        ],
        "postrouting": [
            "type nat hook postrouting priority srcnat; policy accept;",
            f'oifname != {{ "{name}", "lo" }} ip saddr {network} masquerade',
        ],
    }
    return transaction.text(FAMILY, NAME, chains)
