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
  - A node whose clock differs too much has chrony ask its source again, for at most a minute, before the module fails.
  - Creates the credential as the user C(nobody), so a leaked credential is worthless. It is valid for an hour, so it
    also reaches the last of many nodes. O(asked) and O(leads) find clocks that differ by more than 300 s, which Slurm's
    own credentials do not tolerate.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  decode: {type: dict, default: {}, description: Credential by name of the node that created it.}
  asked:
    description: >-
      Time of the controlling computer just before the task, in seconds since 1970. Without it, no clock is checked.
    type: float
  leads:
    description: RV(lead) of other nodes by name. The module fails if this node's own differs by more than 300 s.
    type: dict
    default: {}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Decode a credential of node1
  munge_credential:
    decode: {node1: "MUNGE:AwQFAAC…"}
"""

RETURN = r"""
credential: {description: A credential created by this node., type: str, returned: success}
lead:
  description: >-
    Lead of this node's clock over the controlling computer's, in seconds. It includes the time that the task needed to
    reach the node.
  type: float
  returned: if O(asked) was given
refused:
  description: Error of unmunge, by name of the node whose credential it refused.
  type: dict
  returned: when munge answers
"""

import contextlib
import subprocess
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.identity import credentials

LIFETIME = 300
"""Seconds by which clocks may differ: the lifetime of Slurm's own credentials (MUNGE's default)."""

HINTS = {
    "Rewound": "its clock is ahead of this node's: compare `chronyc tracking` on both",
    "Expired": "its clock is behind this node's: compare `chronyc tracking` on both",
    "Invalid credential": "the keys differ: run `stead up` on both, and check that munge was restarted",
}


def problem(signer: str, said: str) -> str:
    """Return what is wrong with a node's credential and what to do."""
    hint = next((hint for words, hint in HINTS.items() if words in said), "see `journalctl -u munge` on both")
    return f"the credential of {signer} cannot be decoded here ({said}): {hint}"


def clock_problems(lead: float, leads: dict[str, float]) -> list[str]:
    """Return a line for each node whose clock differs too much from this node's.

    >>> clock_problems(610.0, {"node3": 0.4, "node4": 500.0})
    ["this node's clock is 610 s ahead of node3's: compare `chronyc tracking` on both"]
    """
    apart = {name: lead - float(other) for name, other in leads.items()}
    return [
        f"this node's clock is {abs(error):.0f} s {'ahead of' if error > 0 else 'behind'} {name}'s: "
        "compare `chronyc tracking` on both"
        for name, error in apart.items()
        if abs(error) > LIFETIME
    ]


# chrony hardly believes a source whose clock jumped: by itself, it follows after minutes.
ASK_AGAIN = ("chronyc reset sources", "chronyc burst 4/4", "chronyc waitsync 20 1 0 3")


def ask_source_again() -> float:
    """Have chrony follow its source, for at most a minute; return the seconds by which it set the clock forward."""
    before = time.time() - time.monotonic()
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        for command in ASK_AGAIN:
            subprocess.run(command.split(), capture_output=True, timeout=90, check=False)
    return time.time() - time.monotonic() - before


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "decode": {"type": "dict", "default": {}},
            "asked": {"type": "float"},
            "leads": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    asked, leads, lead = module.params["asked"], module.params["leads"], {}
    if asked is not None:
        lead = {"lead": time.time() - asked}
        if clock_problems(lead["lead"], leads) and not module.check_mode:
            lead["lead"] += ask_source_again()
        if problems := clock_problems(lead["lead"], leads):
            module.fail_json(msg="; ".join(problems), **lead)
    try:
        signed = credentials.sign()
        if signed.returncode:
            module.fail_json(msg=f"cannot create a credential: {signed.stderr.strip()}; see `journalctl -u munge`")
        refused = credentials.refused(module.params["decode"])
    except (OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=f"munge does not answer: {error}; see `journalctl -u munge`")
    if refused:
        module.fail_json(msg="; ".join(problem(*pair) for pair in refused.items()), refused=refused)
    module.exit_json(changed=False, credential=signed.stdout.strip(), refused=refused, **lead)


if __name__ == "__main__":
    main()
