# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The input of the doctor's rules, and their findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ansible.module_utils.slurmstead.identity.accounts import User
from ansible.module_utils.slurmstead.slurm.answers import flags

Facts = Mapping[str, Any]
"""The facts of a machine from doctor_facts, including its `offset`."""


class Finding(NamedTuple):
    """A problem."""

    host: str
    about: str
    """One machine-readable word, such as clock."""
    seen: str
    advice: str
    explained_by: tuple[tuple[str, str], ...] = ()
    """Host and word of the findings that explain this one."""

    @property
    def line(self) -> str:
        """The finding in readable form."""
        return f"{self.host}: {self.seen}: {self.advice}"


@dataclass(frozen=True)
class Cluster:
    """All that is known of a cluster."""

    control: str
    addresses: Mapping[str, str]
    """Addresses in the inventory, by name of machine."""
    machines: Mapping[str, Facts]
    silent: Mapping[str, str] = field(default_factory=dict)
    """Machines that were not checked, with the reason, by name."""
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Errors of a machine for credentials that it could not decode, by name of their signer."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Slurm's configuration as rendered from the inventory, text by name; empty if unknown."""
    accounts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Numeric IDs (user, primary group) of the declared users, by name."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Numeric IDs of the declared groups and of declared users' own groups, by name."""
    users: Mapping[str, User] = field(default_factory=dict)
    """The declared users by name."""
    by_hand: frozenset[str] = frozenset()
    """Accounts that the inventory does not manage, also Ansible's own: numeric IDs, keys and rights may differ."""

    @property
    def brain(self) -> Facts:
        """The machine that runs slurmctld; empty if it was not checked."""
        return self.machines.get(self.control, {})

    def sleeps(self, name: str) -> bool:
        """Say whether slurmctld has powered a worker down to save power, or is powering it down or up."""
        known = self.brain.get("slurm", {}).get("nodes", {}).get(name)
        return bool(known) and any(word.startswith("POWER") for word in flags(known))

    def running(self, unit: str) -> Iterator[tuple[str, Facts]]:
        """Yield the machines on which a unit must run."""
        return ((name, facts) for name, facts in self.machines.items() if unit in facts["wanted"]["units"])


def both(hosts: Iterable[str], *about: str) -> tuple[tuple[str, str], ...]:
    """Return all pairs of hosts and words, for `explained_by`."""
    return tuple((host, word) for host in hosts for word in about)
