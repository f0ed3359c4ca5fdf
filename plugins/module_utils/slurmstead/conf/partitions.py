# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The partitions of a cluster that may have quiet nodes: pure functions from variables to keys of slurm.conf(5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ansible.module_utils.slurmstead.slurm.hostlist import compress

QUIET = "quiet"
"""The partition of the quiet nodes."""

QUIET_KEYS = {"MaxTime": "INFINITE", "OverSubscribe": "EXCLUSIVE", "State": "UP"}
"""A job gets the whole node, whatever it asks for."""

DEFAULT = "DEFAULT"
"""Not a partition, but keys of the following ones."""

Partitions = Mapping[str, Mapping[str, Any] | None]

MAIN = "main"
"""The partition of a site that declares none."""


def names(own: Partitions) -> list[str]:
    """Return the partitions that a site can have."""
    return [*(name for name in own or [MAIN] if name not in (DEFAULT, QUIET)), QUIET]


def default_names(own: Partitions) -> list[str]:
    """Return the partitions of jobs that name none; Slurm uses the last.

    >>> default_names({}), default_names({"a": {"Default": True}, "b": None})
    (['main'], ['a'])
    """
    yes = ("yes", "true", "1", "up")
    marked = {name: keys.get("Default") if isinstance(keys, Mapping) else None for name, keys in own.items()}
    return [str(name) for name, value in (marked or {MAIN: True}).items() if str(value).lower() in yes]


def partitions(
    own: Partitions, defaults: Mapping[str, Mapping[str, Any]], quiet: Collection[str], nodes: Collection[str]
) -> Partitions:
    """Return the keys of each partition, by name. `own` are the site's, which replace the defaults; `nodes` are all.

    With quiet nodes there is a partition for them, to which the site can add keys, and the defaults have the other
    nodes. Without other nodes it is the default partition.

    >>> main = {"main": {"Default": "YES", "Nodes": "ALL"}}
    >>> found = partitions({}, main, ["n3"], ["n1", "n2", "n3"])
    >>> found["main"], found["quiet"]["Nodes"]
    ({'Default': 'YES', 'Nodes': 'n[1-2]'}, 'n3')
    """
    here = [name for name in nodes if name in quiet]
    if not here:
        return own or defaults
    found: dict[str, Mapping[str, Any] | None] = {name: keys for name, keys in own.items() if name != QUIET}
    others = [name for name in nodes if name not in quiet]
    is_default = {}
    if not found.keys() - {DEFAULT}:
        if others:
            found |= {name: {**keys, "Nodes": compress(others)} for name, keys in defaults.items()}
        else:
            is_default = {"Default": "YES"}
    found[QUIET] = {**QUIET_KEYS, **is_default, **(own.get(QUIET) or {}), "Nodes": compress(here)}
    return found
