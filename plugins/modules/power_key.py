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


def public_of(module: AnsibleModule, path: pathlib.Path) -> str:
    """Return the public key of a private one; empty without one, or if a power cut has left a part of it."""
    code, out, said = run("ssh-keygen", "-y", "-P", "", "-f", str(path))
    if code not in (0, 255):
        module.fail_json(msg=f"ssh-keygen: {said.strip()}")
    return out.strip()


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"path": {"type": "path", "required": True}}, supports_check_mode=True)
    path = pathlib.Path(module.params["path"])
    public = public_of(module, path)
    changed = not public
    if changed and not module.check_mode:
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        code, _, said = run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "slurmstead-power", "-f", str(path))
        if code:
            module.fail_json(msg=f"ssh-keygen: {said.strip()}")
        public = public_of(module, path)
    module.exit_json(changed=changed, public=public)


if __name__ == "__main__":
    main()
