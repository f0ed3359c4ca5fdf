"""playbooks/vars/cluster.yml, which tells roles what the groups mean, and what roles tell each other."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "playbooks" / "vars" / "cluster.yml"
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
DEFAULTS = {
    name: value
    for path in (ROOT / "roles").glob("*/defaults/main.yml")
    for name, value in (yaml.safe_load(path.read_text()) or {}).items()
}
LITERAL = re.compile(r"\b(\w+) \| default\(('[^']*'|\[\])\)")
"""A variable of the inventory, and what it is where the inventory does not say."""
RESULT = re.compile(r"^\s*register: (\w+)$", re.MULTILINE)


def test_a_default_that_is_repeated_is_that_of_its_role() -> None:
    found = [(name, yaml.safe_load(value)) for name, value in LITERAL.findall(CLUSTER.read_text())]
    repeated = {name: value for name, value in found if name in DEFAULTS}

    assert {"nfs_client_path", "nfs_server_path", "scratch_path"} <= repeated.keys()
    assert repeated == {name: DEFAULTS[name] for name in repeated}


@pytest.mark.parametrize("role", ["smoke_test", "lab"])
def test_what_roles_get_does_not_come_from_a_test(role: str) -> None:
    variables = yaml.safe_load(CLUSTER.read_text())
    others = {name: str(value) for name, value in variables.items() if not name.startswith(f"{role}_")}

    assert [name for name, value in others.items() if re.search(rf"\b{role}_", value)] == []


@pytest.mark.parametrize("role", ROLES)
def test_only_a_role_itself_reads_its_private_results(role: str) -> None:
    registered = {
        name
        for path in (ROOT / "roles" / role).rglob("*.yml")
        for name in RESULT.findall(path.read_text())
        if name.startswith("__")
    }
    elsewhere = [
        path
        for place in ("roles", "playbooks")
        for path in (ROOT / place).rglob("*")
        if path.suffix in (".yml", ".j2") and ROOT / "roles" / role not in path.parents
    ]
    readers = {f"{path.name} reads {name}" for path in elsewhere for name in registered if name in path.read_text()}

    assert not readers, "Register it under a name without underscores, and document it in the role's README"


@pytest.mark.parametrize("role", ROLES)
def test_a_published_result_is_documented(role: str) -> None:
    published = {
        name
        for path in (ROOT / "roles" / role).rglob("*.yml")
        for name in RESULT.findall(path.read_text())
        if not name.startswith("__")
    }
    readme = (ROOT / "roles" / role / "README.md").read_text()

    assert [name for name in sorted(published) if f"`{name}`" not in readme] == []
