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
    return [*([name for name in own if name not in (DEFAULT, QUIET)] or [MAIN]), QUIET]


def default_names(own: Partitions) -> list[str]:
    """Return the partitions of jobs that name none; Slurm uses the last.

    >>> default_names({}), default_names({"a": {"Default": True}, "b": None})
    (['main'], ['a'])
    >>> default_names({"quiet": {"MaxTime": 60}}), default_names({"quiet": {"Nodes": "ALL"}})
    (['main'], [])
    """
    yes = ("yes", "true", "1", "up")
    marked = {name: keys.get("Default") if isinstance(keys, Mapping) else None for name, keys in own.items()}
    found = [str(name) for name, value in marked.items() if str(value).lower() in yes]
    return found or ([] if _replace_main(own) else [MAIN])


def has_own_quiet(own: Partitions) -> bool:
    """Say whether `quiet` exists without quiet nodes; its keys alone are only for them.

    >>> has_own_quiet({"quiet": {"MaxTime": 60}}), has_own_quiet({"DEFAULT": {"Nodes": "ALL"}, "quiet": None})
    (False, True)
    """
    keys = (own.get(name) for name in (QUIET, DEFAULT))
    return QUIET in own and any(isinstance(one, Mapping) and bool(one.get("Nodes")) for one in keys)


def _replace_main(own: Partitions) -> bool:
    return bool(own.keys() - {DEFAULT, QUIET}) or has_own_quiet(own)


def partitions(
    own: Partitions, defaults: Mapping[str, Mapping[str, Any]], quiet: Collection[str], nodes: Collection[str]
) -> Partitions:
    """Return the keys of each partition, by name. `own` are the site's, which replace the defaults; `nodes` are all.

    With quiet nodes there is a partition for them, to which the site can add keys, and the defaults have the other
    nodes. Without other nodes it is the default partition. Without quiet nodes these keys have no effect.

    >>> main = {"main": {"Default": "YES", "Nodes": "ALL"}}
    >>> found = partitions({}, main, ["n3"], ["n1", "n2", "n3"])
    >>> found["main"], found["quiet"]["Nodes"]
    ({'Default': 'YES', 'Nodes': 'n[1-2]'}, 'n3')
    """
    here = [name for name in nodes if name in quiet]
    if not here and has_own_quiet(own):
        return own
    found: dict[str, Mapping[str, Any] | None] = {name: keys for name, keys in own.items() if name != QUIET}
    if not here:
        return found if _replace_main(found) else {**found, **defaults}
    others = [name for name in nodes if name not in quiet]
    is_default = {}
    if not found.keys() - {DEFAULT}:
        if others:
            found |= {name: {**keys, "Nodes": compress(others)} for name, keys in defaults.items()}
        else:
            is_default = {"Default": "YES"}
    found[QUIET] = {**QUIET_KEYS, **is_default, **(own.get(QUIET) or {}), "Nodes": compress(here)}
    return found
