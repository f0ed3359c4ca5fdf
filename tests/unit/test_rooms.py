"""The rooms of our two Python packages: which room may use which. Nothing runs in circles."""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class House:
    """A package and its table of arrows: for each room or file at its top, what that one may use."""

    path: pathlib.Path
    package: str
    arrows: dict[str, str]

    @functools.cached_property
    def uses(self) -> dict[str, set[str]]:
        """The modules that each module imports."""
        files = sorted(self.path.rglob("*.py"))
        known = {self.dotted(file) for file in files}
        return {self.dotted(file): self._imports(file, known) for file in files}

    def dotted(self, path: pathlib.Path) -> str:
        parts = path.relative_to(self.path).with_suffix("").parts
        return ".".join((self.package, *(part for part in parts if part != "__init__")))

    def _imports(self, path: pathlib.Path, known: set[str]) -> set[str]:
        """The modules of the house that a file imports; a module counts before the package that holds it."""
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{self.package}."):
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= inside & known or {str(node.module)}
        return found - {self.dotted(path)}

    def room(self, module: str) -> str:
        return module.removeprefix(f"{self.package}.").partition(".")[0]


PLUGINS = House(
    ROOT / "plugins" / "module_utils" / "slurmstead",
    "ansible.module_utils.slurmstead",
    {
        "packages": "doctor conf reach",
        "doctor": "accounting change gate conf hardware workers slurm identity reach",
        "change": "gate conf workers slurm reach",
        "gate": "conf slurm",
        "inventory": "accounting conf discover hardware jupyterhub network power slurm storage "
        "identity people sandbox vpn",
        "people": "identity",
        "hardware": "conf reach",
        "accounting": "reach",
        "backup": "conf slurm reach",
        "board": "power",
        "conf": "slurm",
        "smoke": "slurm reach",
        "workers": "slurm reach",
        "slurm": "reach",
        "storage": "",
        "identity": "reach",
        "firewall": "nftables reach",
        "power": "workers slurm reach",
        "login": "reach",
        "network": "nftables",
        "jupyterhub": "identity reach",
        "discover": "hardware power reach storage",
        "install": "discover reach storage",
        "quiet": "",
        "sandbox": "reach",
        "vpn": "nftables",
        "nftables": "",
        "reach": "",
        "lab": "",
    },
)
SCRIPTS = House(
    ROOT / "scripts" / "slurmstead",
    "slurmstead",
    {
        "__main__": "cli",
        "cli": "testing lab cluster runner client site paths errors wording",
        "testing": "lab runner paths errors wording",
        "lab": "cluster runner paths errors wording",
        "cluster": "runner rooms paths errors wording",
        "runner": "rooms paths errors wording",
        "site": "rooms paths errors wording",
        "client": "errors wording",
        "role_docs": "paths",
        "rooms": "paths",
        "paths": "",
        "errors": "",
        "wording": "",
    },
)
"""An arrow that you need and do not find in a table is a question to the design first."""

every_house = pytest.mark.parametrize("house", [PLUGINS, SCRIPTS], ids=["plugins", "scripts"])


@every_house
def test_a_room_uses_only_the_rooms_that_it_may(house: House) -> None:
    allowed = {name: set(uses.split()) for name, uses in house.arrows.items()}
    wrong = [
        f"{module} imports {used}: {room} may use {house.arrows.get(room) or 'nothing'}"
        for module, uses in house.uses.items()
        for room in [house.room(module)]
        for used in sorted(uses)
        if house.room(used) not in allowed.get(room, set()) | {room}
    ]

    assert not wrong, "\n".join(wrong)


@every_house
def test_the_table_of_rooms_is_that_of_the_code(house: House) -> None:
    used = collections.defaultdict(set)
    for module, uses in house.uses.items():
        if module != house.package:
            used[house.room(module)] |= {house.room(other) for other in uses} - {house.room(module)}

    table = {name: set(uses.split()) for name, uses in house.arrows.items()}
    assert table == used, "Remove what no file uses from the table of arrows"


@every_house
def test_no_file_and_no_room_uses_itself_in_a_circle(house: House) -> None:
    assert list(graphlib.TopologicalSorter(house.uses).static_order())
    assert list(graphlib.TopologicalSorter({name: uses.split() for name, uses in house.arrows.items()}).static_order())


@every_house
def test_every_room_says_what_it_knows_and_who_uses_it(house: House) -> None:
    rooms = [path for path in house.path.glob("*/__init__.py")]
    texts = {path.parent.name: ast.get_docstring(ast.parse(path.read_text())) or "" for path in rooms}
    silent = [name for name, text in texts.items() if "\n\n" not in text]

    assert not silent, "Say in __init__.py, in two or three sentences, what the room knows and who uses it"


def test_what_nodes_run_has_a_room() -> None:
    assert sorted(path.name for path in PLUGINS.path.glob("*.py")) == ["__init__.py"], "Give it a room"
