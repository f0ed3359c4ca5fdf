# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What is judged, and what is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ansible.module_utils.slurmstead.slurm.answers import flags

Facts = Mapping[str, Any]
"""What doctor_facts returned of a machine: its `facts`, and in them its `offset`."""


class Finding(NamedTuple):
    """Something that is wrong."""

    host: str
    about: str
    """One word for programs, such as clock."""
    seen: str
    advice: str
    explained_by: tuple[tuple[str, str], ...] = ()
    """Host and word of findings of which this one is only a consequence."""

    @property
    def line(self) -> str:
        """The finding as a person reads it."""
        return f"{self.host}: {self.seen}: {self.advice}"


@dataclass(frozen=True)
class Cluster:
    """All that is known of a cluster."""

    control: str
    addresses: Mapping[str, str]
    """Address by name of machine, as the inventory says."""
    machines: Mapping[str, Facts]
    silent: Mapping[str, str] = field(default_factory=dict)
    """Why a machine was not checked, by name."""
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What a machine said of credentials that it could not read, by the name of their signer."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The configuration of Slurm as the inventory makes it, text by name; empty where it is not known."""
    accounts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Numbers (user, primary group) of the declared users, by name."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Numbers of the declared groups, and of those that declared users have of their own, by name."""
    logins: frozenset[str] = frozenset()
    """Users with whom Ansible logs in, whose numbers mean nothing."""

    @property
    def brain(self) -> Facts:
        """The machine that runs slurmctld; empty if it was not checked."""
        return self.machines.get(self.control, {})

    def sleeps(self, name: str) -> bool:
        """Say whether slurmctld has switched a worker off to save power, or is about to switch it off or on."""
        known = self.brain.get("slurm", {}).get("nodes", {}).get(name)
        return bool(known) and any(word.startswith("POWER") for word in flags(known))

    def running(self, unit: str) -> Iterator[tuple[str, Facts]]:
        """Yield the machines on which a unit has to run."""
        return ((name, facts) for name, facts in self.machines.items() if unit in facts["wanted"]["units"])


def both(hosts: Iterable[str], *about: str) -> tuple[tuple[str, str], ...]:
    """Return every pair of a host and a word, for `explained_by`."""
    return tuple((host, word) for host in hosts for word in about)
