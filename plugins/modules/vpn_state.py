#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Read the public key of control's VPN, and when each peer was last there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vpn_state
short_description: Read the public key of control's VPN, and when each peer was last there
description: Reads no private key and changes nothing. It returns its options, so that the caller has their values.
attributes:
  check_mode: {support: full}
options:
  enabled: {type: bool, required: true, description: Whether control shall have the VPN.}
  endpoint: {type: str, required: true, description: Address or name of control outside.}
  network: {type: str, required: true, description: Network of the VPN.}
  port: {type: int, required: true, description: UDP port of the VPN.}
  public_key: {type: path, default: /run/slurmstead-vpn.pub, description: The file with control's public key.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Read the public key of control
  vpn_state:
    enabled: true
    endpoint: home.example.org
    network: 10.79.0.0/24
    port: 51820
"""

RETURN = r"""
key: {description: Public key of control; empty if the VPN has never been started., type: str, returned: always}
seen:
  description: The seconds since the last handshake of each peer that control accepts, by public key; -1 without one.
  type: dict
  returned: always
enabled: {description: The option., type: bool, returned: always}
endpoint: {description: The option., type: str, returned: always}
network: {description: The option., type: str, returned: always}
port: {description: The option., type: int, returned: always}
"""

import pathlib
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.vpn import text


def main() -> None:
    """Run the module."""
    options = {
        "enabled": {"type": "bool", "required": True},
        "endpoint": {"type": "str", "required": True},
        "network": {"type": "str", "required": True},
        "port": {"type": "int", "required": True},
    }
    module = AnsibleModule(
        argument_spec={**options, "public_key": {"type": "path", "default": "/run/slurmstead-vpn.pub"}},
        supports_check_mode=True,
    )
    try:
        key = pathlib.Path(module.params["public_key"]).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        key = ""
    # Without the interface there is no peer. `wg show … dump` would print the private key.
    code, out, _ = run("wg", "show", text.INTERFACE, "latest-handshakes")
    module.exit_json(
        changed=False,
        key=key,
        seen=text.handshakes(out, time.time()) if code == 0 else {},
        **{name: module.params[name] for name in options},
    )


if __name__ == "__main__":
    main()
