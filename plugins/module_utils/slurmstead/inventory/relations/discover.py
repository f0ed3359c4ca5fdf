# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the identity of machines: each serial and each host key is that of one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.discover.identity import FINGERPRINT
from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, shown
from ansible.module_utils.slurmstead.inventory.relations.addresses import used_twice


def host_keys_are_fingerprints(os_host_key: str) -> Iterator[Violation]:
    """A fingerprint is what ssh-keygen -l prints."""
    if os_host_key and not FINGERPRINT.fullmatch(os_host_key):
        yield (
            "os_host_key",
            f"is {shown(os_host_key)}, which is not a fingerprint",
            "Write the second word that `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints there, or remove it",
        )


def identities_differ(os_serial: Mapping[str, str], os_host_key: Mapping[str, str]) -> Iterator[HostViolation]:
    """Two names for one machine would create two nodes."""
    for variable, values in (("os_serial", os_serial), ("os_host_key", os_host_key)):
        known = {host: value for host, value in values.items() if value}
        yield from used_twice(variable, known, "Give each host its own, or remove one host")
