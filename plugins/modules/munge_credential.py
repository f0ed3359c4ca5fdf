#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Create a MUNGE credential and decode those of other nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: munge_credential
short_description: Create a MUNGE credential and decode those of other nodes
description:
  - Decodes the credentials of other nodes, and fails with the reason if one of them cannot be decoded.
  - After such a failure, RV(refused) lists all credentials that could not be decoded.
  - Creates the credential as the user C(nobody), so a leaked credential is worthless.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  decode: {type: dict, default: {}, description: Credential by name of the node that created it.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Decode a credential of node1
  munge_credential:
    decode: {node1: "MUNGE:AwQFAAC…"}
"""

RETURN = r"""
credential: {description: A credential created by this node., type: str, returned: success}
refused:
  description: Error of unmunge, by name of the node whose credential it refused.
  type: dict
  returned: when munge answers
"""

import subprocess

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.identity import credentials

HINTS = {
    "Rewound": "its clock is ahead of this node's: compare `chronyc tracking` on both",
    "Expired": "its clock is behind this node's: compare `chronyc tracking` on both",
    "Invalid credential": "the keys differ: run site.yml on both, and check that munge was restarted",
}


def problem(signer: str, said: str) -> str:
    """Return what is wrong with a node's credential and what to do."""
    hint = next((hint for words, hint in HINTS.items() if words in said), "see `journalctl -u munge` on both")
    return f"the credential of {signer} cannot be decoded here ({said}): {hint}"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"decode": {"type": "dict", "default": {}}}, supports_check_mode=True)
    try:
        signed = credentials.sign()
        if signed.returncode:
            module.fail_json(msg=f"cannot create a credential: {signed.stderr.strip()}; see `journalctl -u munge`")
        refused = credentials.refused(module.params["decode"])
    except (OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=f"munge does not answer: {error}; see `journalctl -u munge`")
    if refused:
        module.fail_json(msg="; ".join(problem(*pair) for pair in refused.items()), refused=refused)
    module.exit_json(changed=False, credential=signed.stdout.strip(), refused=refused)


if __name__ == "__main__":
    main()
