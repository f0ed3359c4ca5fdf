# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The peers of a site's vpn.yml beside the network of the VPN."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ansible.module_utils.slurmstead.inventory.model import Inventory, Problem
from ansible.module_utils.slurmstead.vpn import peers


def problems(inventory: Inventory, directory: str, control: str, network: str) -> Iterator[Problem]:
    """Yield the mistakes of the file in a directory.

    :param control: the group whose host has the VPN
    :param network: the default of vpn_network
    """
    path = Path(directory, peers.NAME)
    name = os.path.relpath(path)
    faults: list[peers.Fault] = []
    try:
        found = peers.read(path, name)
        for host in list(inventory.groups.get(control, ()))[:1]:
            variables = inventory.hosts.get(host, {})
            given = str(variables["vpn_network"].value) if "vpn_network" in variables else network
            faults += peers.faults(found, given)
    except peers.PeersError as error:
        faults += error.faults
    except ValueError:
        return  # A relation reports vpn_network.
    for wrong, advice in faults:
        yield Problem(name, wrong, advice)
