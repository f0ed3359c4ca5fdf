#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Create the key with which control shuts workers down."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power_key
short_description: Create the key with which control shuts workers down
description: A key that exists is kept. The private key never leaves the machine.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  path: {type: path, required: true, description: File of the private key.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Create the key that shuts workers down
  power_key:
    path: /etc/slurmstead/power-key
"""

RETURN = r"""
public: {description: The public key; empty before it exists., type: str, returned: always}
"""

import pathlib

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach.commands import run


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"path": {"type": "path", "required": True}}, supports_check_mode=True)
    path = pathlib.Path(module.params["path"])
    public = path.with_name(f"{path.name}.pub")
    changed = not public.exists()
    if changed and not module.check_mode:
        # A private key without its public one is what a power cut left.
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        code, _, said = run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "slurmstead-power", "-f", str(path))
        if code:
            module.fail_json(msg=f"ssh-keygen: {said.strip()}")
    module.exit_json(changed=changed, public=public.read_text().strip() if public.exists() else "")


if __name__ == "__main__":
    main()
