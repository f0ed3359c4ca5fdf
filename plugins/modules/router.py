#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Refuse to make a machine a router where that would harm a network."""

from __future__ import annotations

DOCUMENTATION = r"""
module: router
short_description: Refuse to make a machine a router where that would harm a network
description:
  - Changes nothing. Fails if the machine lacks the inside interface or its address, if the inside network overlaps
    another network of the machine, or if another DHCP server answers on the inside interface.
  - The DHCP servers are found with a real question, whose answers are not accepted.
attributes:
  check_mode: {support: full}
options:
  interface: {type: str, required: true, description: Interface to which the switch of the inside is connected.}
  network: {type: str, required: true, description: The inside network.}
  address: {type: str, required: true, description: Address of this machine on the interface.}
  bmc_network: {type: str, default: '', description: Network of the BMCs; empty without one.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Check the networks of this machine
  router:
    interface: enp2s0
    network: 10.77.0.0/24
    address: 10.77.0.1
"""

RETURN = r"""
changed: {description: Always false., type: bool, returned: always}
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.network import dhcp, plan
from ansible.module_utils.slurmstead.reach.commands import run


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "interface": {"type": "str", "required": True},
            "network": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "bmc_network": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    code, out, err = run("ip", "-json", "address")
    if code:
        module.fail_json(msg=f"`ip -json address` failed: {err.strip()}")
    refused = plan.refusal(json.loads(out), **module.params)
    if refused:
        module.fail_json(msg=f"{refused}; nothing was changed")
    interface = module.params["interface"]
    try:
        found = dhcp.others(interface)
    except OSError as error:
        module.fail_json(msg=f"cannot ask for DHCP servers on {interface}: {error}; nothing was changed")
    if found:
        module.fail_json(
            msg=f"another DHCP server answers on {interface}: {', '.join(found)}; nothing was changed. Switch it off "
            f"there, or correct router_interface if {interface} is not the inside"
        )
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
