#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Install the MUNGE key on a node, and make munged load it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: munge_key
short_description: Install the MUNGE key on a node, and make munged load it
description:
  - Installs the key, readable by munged alone. Restarts munged if it started before the key was installed (also if an
    earlier run installed the key and was interrupted before the restart), or if it does not answer.
  - Without a key, fails unless MUNGE is installed on the node.
  - With I(create), only makes a key where it is missing, or an empty file that a power cut left.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  content_base64: {type: str, description: The key.}
  create: {type: bool, default: false, description: Make a key if it is missing.}
  generate: {type: bool, default: false, description: Return a new key; it is not written to disk.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Install the key
  munge_key:
    content_base64: "{{ __munge_key.content }}"
  no_log: true
  diff: false
"""

RETURN = r"""
content: {description: A new key in base64., type: str, returned: with I(generate)}
"""

import base64
import secrets

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.identity import credentials, munge
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.daemons import MUNGED, main_process

LENGTH = 128
"""Length of the key in bytes, as of mungekey(8)."""

SECONDS = 90.0


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "content_base64": {"type": "str", "no_log": True},
            "create": {"type": "bool", "default": False},
            "generate": {"type": "bool", "default": False},
        },
        mutually_exclusive=[("content_base64", "create", "generate")],
        supports_check_mode=True,
    )
    if not munge.is_installed():
        if (module.params["content_base64"] is not None or module.params["create"]) and module.check_mode:
            module.exit_json(changed=True)
        module.fail_json(msg="MUNGE is not installed here; run `stead up` without --tags")
    if module.params["generate"]:
        module.exit_json(changed=False, content=base64.b64encode(secrets.token_bytes(LENGTH)).decode())
    if module.params["content_base64"] is None and not module.params["create"]:
        module.exit_json(changed=False)
    try:
        if module.params["create"]:
            module.exit_json(changed=create(module.check_mode))
        module.exit_json(changed=bring(base64.b64decode(module.params["content_base64"]), module))
    except OSError as error:
        module.fail_json(msg=f"cannot install the key: {error}")


def create(check_mode: bool) -> bool:
    """Make a key if it is missing; return whether it was."""
    missing = not munge.is_there()
    if missing and not check_mode:
        munge.write(secrets.token_bytes(LENGTH))
    return missing


def bring(content: bytes, module: AnsibleModule) -> bool:
    """Install the key, and restart the daemon if necessary; return whether anything was done."""
    right = munge.is_right(content)
    if right and munge.has_read(main_process(MUNGED)) and not credentials.is_deaf():
        return False
    if not module.check_mode:
        if right:
            munge.touch()
        else:
            munge.write(content)
        code, _, err = run("systemctl", "restart", MUNGED, seconds=SECONDS)
        if code:
            module.fail_json(msg=f"munge does not start: {err.strip()}; see `journalctl -u munge`")
    return True


if __name__ == "__main__":
    main()
