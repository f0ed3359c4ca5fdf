# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a slurm.conf, cgroup.conf or gres.conf says, whatever the order, case and spacing of its lines.

`Include` is not followed: Slurmstead writes none, and what another file says can change behind its back. A file that
has one is told apart by `includes`; the comparison takes it for a change of everything, and a new file is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible.module_utils.slurmstead.conf import lines as conf_lines
from ansible.module_utils.slurmstead.conf.lines import Line, Pair
from ansible.module_utils.slurmstead.slurm.hostlist import expand

REPEATED = frozenset({"slurmctldhost"})
"""Keys that may stand on several lines, each adding to the others."""

ALIASES = {"procs": "cpus", "feature": "features", "socketsperboard": "sockets", "shared": "oversubscribe"}
"""Names of the same thing, by lower case (slurm.conf(5))."""

WORDS = frozenset({"yes", "no", "true", "false", "up", "down", "infinite", "unlimited", "all"})
"""Values whose case means nothing; others are paths and names, or compared as they are."""

TRUTH = {"true": "yes", "up": "yes", "1": "yes", "false": "no", "0": "no"}
"""Booleans as they are compared."""

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
    """Keys of the whole cluster, by lower case; of one that is written twice it is the last, as in Slurm."""
    nodes: Mapping[str, Section] = field(default_factory=dict)
    partitions: Mapping[str, Section] = field(default_factory=dict)
    other: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The lines that begin with NodeSet or DownNodes, normalized, by that key in lower case."""
    includes: tuple[Line, ...] = ()
    repeated: tuple[tuple[str, Pair, Pair], ...] = ()
    """What is written twice: its kind, the first and the later place."""
    unreadable: tuple[tuple[Pair, str], ...] = ()
    """Invalid host lists, and why."""

    def value(self, key: str, default: str = "") -> str:
        """Return the value of a key of the whole cluster."""
        pair = self.settings.get(key.lower())
        return pair.value if pair else default


def normal(key: str, value: str) -> str:
    """Return a value as it is compared. The order of a list's words means nothing, except of plugins.

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
    """Gathers a model line by line: a DEFAULT line holds for what stands below it."""

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
        """Take a key of the whole cluster."""
        before = self.settings.get(pair.name)
        if before and pair.name in REPEATED:
            pair = Pair(pair.key, f"{before.value},{pair.value}", before.line)
        elif before:
            self.repeated.append(("key", before, pair))
        self.settings[pair.name] = pair

    def section(self, first: Pair, rest: list[Pair], into: dict[str, dict[str, Pair]], kind: str) -> None:
        """Take a line of nodes or of a partition."""
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
            # Under no key: where the name itself stands.
            into[name] = {**spread, "": Pair(first.key, name, first.line)}


def read(text: str) -> Model:
    """Return what a file says. Host lists and repetitions that are wrong are noted, not raised."""
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
    """Return the names that a partition's Nodes stand for: nodes, or those of a node set."""
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
    """Return the normalized lines of gres.conf by the node that they are about; those about all under `""`.

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
        # A line that is no pairs is a difference all the same.
        shown = " ".join(f"{key}={value}" for key, value in sorted(keys.items())) or line.text
        for name in names:
            found.setdefault(name, set()).add(shown)
    return {name: frozenset(lines) for name, lines in found.items()}


def number(text: str) -> int | None:
    """Return a whole number, or None."""
    return int(text) if re.fullmatch(r"-?\d+", text) else None
