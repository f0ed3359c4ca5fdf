# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The meaning of a slurm.conf, cgroup.conf or gres.conf, independent of the order, case and spacing of its lines.

`Include` is not followed: Slurmstead writes none, and an included file can change unnoticed. `includes` marks a file
that has one; a comparison then counts everything as changed, and as a new file it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.conf import lines as conf_lines
from ansible.module_utils.slurmstead.conf.lines import Line, Pair
from ansible.module_utils.slurmstead.slurm.hostlist import expand

REPEATED = frozenset({"slurmctldhost"})
"""Keys that may be on several lines; their values add up."""

ALIASES = {"procs": "cpus", "feature": "features", "socketsperboard": "sockets", "shared": "oversubscribe"}
"""Synonyms of keys, in lower case (slurm.conf(5))."""

WORDS = frozenset({"yes", "no", "true", "false", "up", "down", "infinite", "unlimited", "all"})
"""Keys whose values are case-insensitive; other values are paths and names, and compared as they are."""

TRUTH = {"true": "yes", "up": "yes", "1": "yes", "false": "no", "0": "no"}
"""Canonical forms of booleans."""

BOOLEANS = frozenset({"default", "hidden", "rootonly", "lln", "disablerootjobs", "exclusiveuser", "reqresv"})
"""Keys of a partition that are booleans (_partition_options in src/common/read_config.c)."""

PER_NODE = frozenset({"nodeaddr", "nodehostname", "port"})
"""Keys of a NodeName line whose value is a list with one entry for each node."""

Section = Mapping[str, Pair]
"""The keys of one node or partition, by lower case, with those of the DEFAULT lines above it."""


@dataclass(frozen=True)
class Model:
    """One file."""

    settings: Mapping[str, Pair] = field(default_factory=dict)
    """Keys of the whole cluster, in lower case; of a repeated key the last value, as in Slurm."""
    nodes: Mapping[str, Section] = field(default_factory=dict)
    partitions: Mapping[str, Section] = field(default_factory=dict)
    other: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The lines that begin with NodeSet or DownNodes, normalized, by that key in lower case."""
    includes: tuple[Line, ...] = ()
    repeated: tuple[tuple[str, Pair, Pair], ...] = ()
    """Repetitions: the kind, the first and the later place."""
    unreadable: tuple[tuple[Pair, str], ...] = ()
    """Invalid host lists, and why."""

    def value(self, key: str, default: str = "") -> str:
        """Return the value of a key of the whole cluster."""
        pair = self.settings.get(key.lower())
        return pair.value if pair else default


def normal(key: str, value: str) -> str:
    """Return a value in canonical form. The order of a list's words is ignored, except for plugins.

    >>> normal("default", "True"), normal("schedulerparameters", "b, a"), normal("epilog", "/A")
    ('yes', 'a,b', '/A')
    """
    if key in BOOLEANS:
        return TRUTH.get(value.lower(), value.lower())
    if key.endswith(("parameters", "flags", "param", "params", "features")):
        return ",".join(sorted(word.strip() for word in value.split(",") if word.strip()))
    return value.lower() if value.lower() in WORDS else value


def _keys(pairs: Iterable[Pair]) -> dict[str, Pair]:
    return {ALIASES.get(pair.name, pair.name): pair for pair in pairs}


def _spread(pair: Pair, count: int, position: int) -> Pair:
    """Return the entry for one of several nodes of a line; a value that is not a list of that length applies to all."""
    try:
        values = expand(pair.value)
    except ValueError:
        return pair
    return Pair(pair.key, values[position], pair.line) if len(values) == count > 1 else pair


class _Reader:
    """Builds a model line by line: a DEFAULT line applies to the lines below it."""

    def __init__(self) -> None:
        self.settings: dict[str, Pair] = {}
        self.nodes: dict[str, dict[str, Pair]] = {}
        self.partitions: dict[str, dict[str, Pair]] = {}
        self.other: dict[str, set[str]] = {}
        self.defaults: dict[str, dict[str, Pair]] = {"nodename": {}, "partitionname": {}}
        self.repeated: list[tuple[str, Pair, Pair]] = []
        self.unreadable: list[tuple[Pair, str]] = []

    def line(self, line: Line) -> None:
        """Take a line."""
        if not line.pairs:
            return
        first, *rest = line.pairs
        if first.name == "nodename":
            self.section(first, rest, self.nodes, "node")
        elif first.name == "partitionname":
            self.section(first, rest, self.partitions, "partition")
        elif first.name in ("nodeset", "downnodes"):
            shown = sorted(f"{pair.name}={normal(pair.name, pair.value)}" for pair in line.pairs)
            self.other.setdefault(first.name, set()).add(" ".join(shown))
        else:
            for pair in line.pairs:
                self.setting(pair)

    def setting(self, pair: Pair) -> None:
        """Add a key of the whole cluster."""
        before = self.settings.get(pair.name)
        if before and pair.name in REPEATED:
            pair = Pair(pair.key, f"{before.value},{pair.value}", before.line)
        elif before:
            self.repeated.append(("key", before, pair))
        self.settings[pair.name] = pair

    def section(self, first: Pair, rest: list[Pair], into: dict[str, dict[str, Pair]], kind: str) -> None:
        """Add a line of nodes or of a partition."""
        own = _keys(rest)
        if first.value.upper() == "DEFAULT":
            self.defaults[first.name].update(own)
            return
        try:
            names = expand(first.value)
        except ValueError as error:
            self.unreadable.append((first, str(error)))
            return
        keys = {**self.defaults[first.name], **own}
        for position, name in enumerate(names):
            if name in into:
                self.repeated.append((kind, into[name][""], Pair(first.key, name, first.line)))
            spread = {
                key: _spread(pair, len(names), position) if key in PER_NODE else pair for key, pair in keys.items()
            }
            # Without a key: the place of the name itself.
            into[name] = {**spread, "": Pair(first.key, name, first.line)}


def read(text: str) -> Model:
    """Return the model of a file. Invalid host lists and repetitions are recorded, not raised."""
    reader = _Reader()
    lines = conf_lines.parse(text)
    for line in lines:
        reader.line(line)
    return Model(
        reader.settings,
        reader.nodes,
        reader.partitions,
        {kind: frozenset(texts) for kind, texts in reader.other.items()},
        tuple(line for line in lines if line.include),
        tuple(reader.repeated),
        tuple(reader.unreadable),
    )


def members(model: Model, partition: Section) -> frozenset[str]:
    """Return the nodes of a partition, with node sets resolved."""
    nodes = partition.get("nodes")
    if nodes is None or nodes.value in ("", "(null)"):
        return frozenset()
    if nodes.value.upper() == "ALL":
        return frozenset(model.nodes)
    try:
        return frozenset(expand(nodes.value))
    except ValueError:
        return frozenset()


def gres_by_node(text: str) -> dict[str, frozenset[str]]:
    """Return the normalized lines of gres.conf by node; lines for all nodes are under `""`.

    >>> gres_by_node("NodeName=n[1-2] Name=core Count=4")["n2"]
    frozenset({'count=4 name=core'})
    """
    found: dict[str, set[str]] = {}
    for line in conf_lines.parse(text):
        keys = {pair.name: pair.value for pair in line.pairs}
        nodes = keys.pop("nodename", "")
        try:
            names = expand(nodes) if nodes else [""]
        except ValueError:
            names = [nodes]
        # A line without key=value pairs still counts as a difference.
        shown = " ".join(f"{key}={value}" for key, value in sorted(keys.items())) or line.text
        for name in names:
            found.setdefault(name, set()).add(shown)
    return {name: frozenset(lines) for name, lines in found.items()}


def number(text: str) -> int | None:
    """Return a whole number, or None."""
    return int(text) if re.fullmatch(r"-?\d+", text) else None
