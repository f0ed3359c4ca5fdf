#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Refuse a network for the VPN that overlaps one in which this machine is."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vpn_network
short_description: Refuse a network for the VPN that overlaps one in which this machine is
description:
  - Changes nothing. The VPN drops packets that come from elsewhere with addresses of its network, so an overlap would
    lock out the computers of the other network.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  network: {type: str, required: true, description: The network.}
  interface: {type: str, required: true, description: "Interface of the VPN, whose own address is no overlap."}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Check the network of the VPN
  vpn_network:
    network: 10.79.0.0/24
    interface: stead-vpn
"""

RETURN = r"""
changed: {description: Always false., type: bool, returned: always}
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.network import plan
from ansible.module_utils.slurmstead.reach.commands import run


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "network": {"type": "str", "required": True},
            "interface": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    network = module.params["network"]
    code, out, err = run("ip", "-json", "address")
    if code:
        module.fail_json(msg=f"`ip -json address` failed: {err.strip()}")
    outside = plan.outside_networks(json.loads(out), module.params["interface"])
    if found := plan.overlap(network, outside):
        module.fail_json(
            msg=f"the network of the VPN, {network} (vpn_network), overlaps {found} on {outside[found]}, whose "
            "computers would be locked out; nothing was changed. Give the VPN another network, such as 10.79.0.0/24"
        )
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
