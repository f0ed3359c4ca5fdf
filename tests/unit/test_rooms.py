"""The rooms of plugins/module_utils/slurmstead: which may use which. Nothing runs in circles."""

from __future__ import annotations

import ast
import collections
import graphlib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOUSE = ROOT / "plugins" / "module_utils" / "slurmstead"
PACKAGE = "ansible.module_utils.slurmstead"

ARROWS = {
    "packages": "doctor conf reach",
    "doctor": "change gate conf hardware slurm identity reach",
    "change": "gate conf slurm reach",
    "gate": "conf slurm",
    "inventory": "conf slurm storage",
    "hardware": "conf reach",
    "backup": "conf slurm",
    "conf": "slurm",
    "smoke": "slurm",
    "workers": "slurm reach",
    "slurm": "reach",
    "storage": "",
    "identity": "reach",
    "reach": "",
    "lab": "",
}
"""The rooms that a room may use. An arrow that you need and do not find here is a question to the design first."""


def dotted(path: pathlib.Path) -> str:
    parts = path.relative_to(HOUSE).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


def imports(path: pathlib.Path, known: set[str]) -> set[str]:
    """The modules of the house that a file imports; a module of that name counts before the package that holds it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside & known or {str(node.module)}
    return found - {dotted(path)}


FILES = sorted(HOUSE.rglob("*.py"))
MODULES = {dotted(path) for path in FILES}
USES = {dotted(path): imports(path, MODULES) for path in FILES}


def room(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.").partition(".")[0]


def test_a_room_uses_only_the_rooms_that_it_may() -> None:
    allowed = {name: set(uses.split()) for name, uses in ARROWS.items()}
    wrong = [
        f"{module} imports {used}: {room(module)} may use {ARROWS.get(room(module), 'nothing') or 'nothing'}"
        for module, uses in USES.items()
        for used in sorted(uses)
        if room(used) not in allowed.get(room(module), set()) | {room(module)}
    ]

    assert not wrong, "\n".join(wrong)


def test_the_table_of_rooms_is_that_of_the_code() -> None:
    used = collections.defaultdict(set)
    for module, uses in USES.items():
        if module != PACKAGE:
            used[room(module)] |= {room(other) for other in uses} - {room(module)}

    assert {name: set(uses.split()) for name, uses in ARROWS.items()} == used, "Remove what no file uses from ARROWS"


def test_no_file_and_no_room_uses_itself_in_a_circle() -> None:
    assert list(graphlib.TopologicalSorter(USES).static_order())
    assert list(graphlib.TopologicalSorter({name: uses.split() for name, uses in ARROWS.items()}).static_order())


def test_every_room_says_what_it_knows_and_who_comes_in() -> None:
    texts = {name: ast.get_docstring(ast.parse((HOUSE / name / "__init__.py").read_text())) or "" for name in ARROWS}
    silent = [name for name, text in texts.items() if "\n\n" not in text]

    assert not silent, "Say in two or three sentences in __init__.py what the room knows and who comes in"
    assert sorted(path.name for path in HOUSE.glob("*.py")) == ["__init__.py"], "Give it a room"
