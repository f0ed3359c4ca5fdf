# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The peers of a site's vpn.yml beside the network of the VPN."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ansible.module_utils.slurmstead.inventory.model import Inventory, Problem
from ansible.module_utils.slurmstead.vpn import peers

NETWORK = "10.79.0.0/24"
"""The default of vpn_network."""


def problems(inventory: Inventory, directory: str, control: str) -> Iterator[Problem]:
    """Yield the mistakes of the file in a directory.

    :param control: the group whose host has the VPN
    """
    path = Path(directory, peers.NAME)
    name = os.path.relpath(path)
    try:
        found = peers.read(path, name)
    except peers.PeersError as error:
        yield Problem(name, str(error).removeprefix(f"{name}: "), "Then run it again")
        return
    for host in list(inventory.groups.get(control, ()))[:1]:
        variables = inventory.hosts.get(host, {})
        network = str(variables["vpn_network"].value) if "vpn_network" in variables else NETWORK
        try:
            faults = list(peers.faults(found, network))
        except ValueError:
            return  # A relation reports vpn_network.
        for fault in faults:
            wrong, _, advice = fault.partition(". ")
            yield Problem(name, wrong, advice)
