# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Mistakes in an inventory's files that Ansible ignores silently, or with a warning that scrolls away."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from ansible.module_utils.slurmstead.inventory.model import (
    DropIn,
    RepeatedKey,
    Sexagesimal,
    VariableFile,
    Violation,
    nearest,
)

YAML_SUFFIXES = ("", ".yml", ".yaml", ".json")
"""Ansible's YAML_FILENAME_EXTENSIONS, and no extension."""

NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
VARIABLE_DIRECTORIES = ("group_vars", "host_vars")
OTHER_DIRECTORIES = ("files", "hardware")

Node = tuple[str, Any]
"""The path of a file, and a node of its YAML."""


def directories(sources: Iterable[str]) -> list[Path]:
    """The directories of inventory sources, as ansible_inventory_sources has them; a list of hosts has none."""
    paths = [Path(source) for source in sources if "," not in source]
    return sorted({path if path.is_dir() else path.parent for path in paths})


def variable_files(sources: Iterable[str]) -> Iterator[VariableFile]:
    """The files in group_vars/ and host_vars/ beside the inventory, found as by the plugin host_group_vars."""
    for directory in directories(sources):
        for kind in ("group", "host"):
            for path in sorted(directory.glob(f"{kind}_vars/*")):
                if path.is_dir() or path.suffix in YAML_SUFFIXES:
                    yield VariableFile(os.path.relpath(path), kind, path.name if path.is_dir() else path.stem)


def unread(sources: Iterable[str]) -> Iterator[Violation]:
    """Entries beside the inventory that are meant as variables, but that Ansible skips; with what is wrong."""
    for directory in directories(sources):
        for path in sorted(entry for entry in directory.glob("*") if entry.is_dir() or entry.is_symlink()):
            name = os.path.relpath(path)
            meant = nearest(path.name, VARIABLE_DIRECTORIES, cutoff=0.88)
            if path.name in VARIABLE_DIRECTORIES or (path.name in OTHER_DIRECTORIES and not path.exists()):
                yield from _unread(path)
            elif meant:
                yield name, "is a directory that Ansible does not read", f"Did you mean {meant}?"


def _unread(path: Path) -> Iterator[Violation]:
    if path.is_dir():
        try:
            entries = sorted(path.iterdir())
        except PermissionError:
            yield os.path.relpath(path), "is a directory that you cannot read", "Change its mode or its owner"
            return
        for entry in entries:
            # Ansible reads no hidden files; Emacs marks a file that is being edited with a link `.#all.yml`.
            if not entry.name.startswith("."):
                yield from _unread(entry)
    elif path.is_symlink() and not path.exists() and path.suffix in YAML_SUFFIXES:
        wrong = f"is a link to {os.readlink(path)}, which does not exist, so Ansible skips it"
        yield os.path.relpath(path), wrong, "Bring the file back, or remove the link"


def drop_ins(directory: str) -> Iterator[DropIn]:
    """The entries of files/*.d; entries of other directories are not drop-ins."""
    for path in sorted(Path(directory).glob("*.d/*")):
        first = b""
        if path.is_file():
            with path.open("rb") as file:
                first = file.readline(256)
        # Not os.access(): for root it returns True even if other users cannot execute the file.
        executable = bool(path.is_file() and path.stat().st_mode & 0o100)
        yield DropIn(os.path.relpath(path), path.is_file(), executable, first)


def not_yaml(sources: Iterable[str]) -> Iterator[str]:
    """A line for each file that Ansible cannot read as YAML: Ansible names neither the file nor the line."""
    files = [Path(source) for source in sources if Path(source).suffix]
    for directory in directories(sources):
        files += [path for kind in VARIABLE_DIRECTORIES for path in sorted(directory.glob(f"{kind}/**/*"))]
    for path in files:
        if path.is_file() and path.suffix in YAML_SUFFIXES:
            try:
                _compose(path)
            except yaml.MarkedYAMLError as error:
                line = error.problem_mark.line + 1 if error.problem_mark else 1
                yield f"{os.path.relpath(path)}:{line}: is not YAML ({error.problem})"
            except yaml.YAMLError:
                yield f"{os.path.relpath(path)}: is not UTF-8, or has a control character"


def _compose(path: Path) -> Any:
    """Return the YAML nodes of a file: Python values have lost the first of two keys, and the spelling of numbers."""
    return yaml.compose(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def repeated_keys(found: Iterable[Node]) -> Iterator[RepeatedKey]:
    """Keys that a mapping of a YAML file of the inventory has twice: a host, a group or a variable."""
    for path, node in found:
        if isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, _ in node.value:
                line = key.start_mark.line + 1
                if str(key.value) in first:
                    yield RepeatedKey(f"{path}:{line}", str(key.value), first[str(key.value)])
                first.setdefault(str(key.value), line)


def sexagesimals(found: Iterable[Node]) -> Iterator[Sexagesimal]:
    """Values such as 24:00:00, which YAML 1.1 reads as a number to the base of 60: 86400."""
    for path, node in found:
        if isinstance(node, yaml.ScalarNode) and node.tag in NUMBERS and ":" in node.value:
            place = f"{path}:{node.start_mark.line + 1}"
            yield Sexagesimal(place, node.value, str(yaml.safe_load(node.value)))


def nodes(sources: Iterable[str]) -> Iterator[Node]:
    """Each YAML node of all YAML files of the inventory, except keys."""
    for directory in directories(sources):
        for pattern in ("*", "group_vars/**/*", "host_vars/**/*"):
            for path in sorted(directory.glob(pattern)):
                if path.is_file() and path.suffix in YAML_SUFFIXES:
                    yield from ((os.path.relpath(path), node) for node in _nodes_of(path))


def _nodes_of(path: Path) -> Iterator[Any]:
    try:
        waiting = [_compose(path)]
    except yaml.YAMLError:
        return  # An INI inventory, a program or a vault. Ansible itself reports files that it cannot read.
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            waiting += [value for _, value in node.value]
