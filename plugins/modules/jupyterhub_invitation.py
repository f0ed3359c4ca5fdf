#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Let people choose a password on the hub's page, once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: jupyterhub_invitation
short_description: Let people choose a password on the hub's page, once
description:
  - The secret in a person's link stays on the controlling computer; the machine of the hub gets its SHA-256.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  people: {type: dict, required: true, description: SHA-256 by login name.}
  url: {type: str, required: true, description: Address of the hub.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Invite Alice
  jupyterhub_invitation:
    people: {alice: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae}
    url: https://control
"""

RETURN = r"""
url: {description: Address of the hub., type: str, returned: success}
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.jupyterhub import invitation

UNIT = Path("/etc/systemd/system/slurmstead-jupyterhub.service")
"""Missing where the hub was switched off; its state stays."""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"people": {"type": "dict", "required": True}, "url": {"type": "str", "required": True}},
        supports_check_mode=True,
    )
    people = {str(name): str(digest) for name, digest in module.params["people"].items()}
    if not UNIT.exists():
        module.fail_json(msg="this machine has no hub for notebooks: set jupyterhub_enabled, and run `stead up`")
    wrong = list(invitation.problems(people))
    if wrong:
        module.fail_json(msg="; ".join(wrong))
    try:
        if not module.check_mode:
            invitation.write(people)
    except OSError as error:
        module.fail_json(msg=f"{invitation.DIRECTORY}: {error}")
    module.exit_json(changed=True, url=module.params["url"])


if __name__ == "__main__":
    main()
