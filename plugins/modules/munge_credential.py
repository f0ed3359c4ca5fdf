#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Sign a MUNGE credential and read those of others."""

from __future__ import annotations

DOCUMENTATION = r"""
module: munge_credential
short_description: Sign a MUNGE credential and read those of others
description:
  - Reads the credentials that other nodes signed, and fails with the reason if one of them cannot be read.
  - After such a failure, RV(refused) has all that were not.
  - Signs a credential as the user C(nobody), so it is worthless to anyone who sees it.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  decode: {type: dict, default: {}, description: Credential by the name of the node that signed it.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Read what node1 signed
  munge_credential:
    decode: {node1: "MUNGE:AwQFAAC…"}
"""

RETURN = r"""
credential: {description: A credential signed by this node., type: str, returned: success}
refused:
  description: What unmunge said, by the name of the node whose credential it refused.
  type: dict
  returned: when munge answers
"""

import subprocess

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.identity import credentials

HINTS = {
    "Rewound": "its clock is ahead of this node's: compare `chronyc tracking` on both",
    "Expired": "its clock is behind this node's: compare `chronyc tracking` on both",
    "Invalid credential": "the keys differ: run site.yml on both, and see that munge was restarted",
}


def problem(signer: str, said: str) -> str:
    """Say what is wrong with a node's credential and what to do about it."""
    hint = next((hint for words, hint in HINTS.items() if words in said), "see `journalctl -u munge` on both")
    return f"the credential that {signer} signed cannot be read here ({said}): {hint}"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"decode": {"type": "dict", "default": {}}}, supports_check_mode=True)
    try:
        signed = credentials.sign()
        if signed.returncode:
            module.fail_json(msg=f"this node cannot sign: {signed.stderr.strip()}; see `journalctl -u munge`")
        refused = credentials.refused(module.params["decode"])
    except (OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=f"munge does not answer: {error}; see `journalctl -u munge`")
    if refused:
        module.fail_json(msg="; ".join(problem(*pair) for pair in refused.items()), refused=refused)
    module.exit_json(changed=False, credential=signed.stdout.strip(), refused=refused)


if __name__ == "__main__":
    main()
