#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Give a node the MUNGE key, and have its daemon read it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: munge_key
short_description: Give a node the MUNGE key, and have its daemon read it
description:
  - Puts the key in its place, readable by the daemon alone, and restarts the daemon if it started before the key came
    there, also when it was an earlier run that brought the key and ended before the restart, or if it cannot be asked.
  - Without a key it looks whether the node has MUNGE, and fails if not.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  content_base64: {type: str, description: The key.}
  generate: {type: bool, default: false, description: Return a new key, which is written nowhere.}
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
"""Bytes, as mungekey(8) makes them."""

SECONDS = 90.0


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "content_base64": {"type": "str", "no_log": True},
            "generate": {"type": "bool", "default": False},
        },
        mutually_exclusive=[("content_base64", "generate")],
        supports_check_mode=True,
    )
    if not munge.is_installed():
        if module.params["content_base64"] is not None and module.check_mode:
            module.exit_json(changed=True)
        module.fail_json(msg="MUNGE is not installed here; run site.yml without --tags")
    if module.params["generate"]:
        module.exit_json(changed=False, content=base64.b64encode(secrets.token_bytes(LENGTH)).decode())
    if module.params["content_base64"] is None:
        module.exit_json(changed=False)
    try:
        module.exit_json(changed=bring(base64.b64decode(module.params["content_base64"]), module))
    except OSError as error:
        module.fail_json(msg=f"cannot bring the key to its place: {error}")


def bring(content: bytes, module: AnsibleModule) -> bool:
    """Put the key in its place and restart the daemon where it has to be; return whether anything had to be done."""
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
