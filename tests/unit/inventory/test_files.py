"""Mistakes in an inventory's files: names of variable files, and duplicate keys."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.inventory.files import (
    directories,
    drop_ins,
    nodes,
    repeated_keys,
    sexagesimals,
    unread,
    variable_files,
)
from ansible.module_utils.slurmstead.inventory.model import DropIn

REPEATED = {
    "a host": ("all:\n  hosts:\n    node1:\n    node1:\n", [("node1", 3, 4)]),
    "a variable in a list": ("a: [{b: 1, c: 2,\n  b: 3}]\n", [("b", 1, 2)]),
    "three times": ("a: 1\na: 2\na: 3\n", [("a", 1, 2), ("a", 1, 3)]),
    "one name in two mappings": ("a: {c: 1}\nb: {c: 2}\n", []),
    "an INI inventory": ("[workers]\nnode1 os_address=1\n[workers]\n", []),
    "a vault": ("a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n", []),
    "an empty file": ("", []),
}


@pytest.mark.parametrize(("content", "expected"), REPEATED.values(), ids=REPEATED)
def test_keys_that_stand_twice_are_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, content: str, expected: list[tuple[str, int, int]]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.yml").write_text(content)

    found = list(repeated_keys(nodes([str(tmp_path)])))

    assert [(one.key, one.first, one.place) for one in found] == [
        (key, first, f"hosts.yml:{line}") for key, first, line in expected
    ]


def test_times_that_yaml_reads_as_numbers_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "group_vars").mkdir()
    times = "  - {MaxTime: 24:00:00, DefaultTime: '1:00:00'}\n  - {MaxTime: 1-00:00:00}\n  - 08:00:00\n  - 90\n"
    (tmp_path / "group_vars" / "all.yml").write_text(f"a:\n{times}")
    (tmp_path / "hosts.yml").write_text("all: {hosts: {node1: {b: 1:30}}}\n")

    found = [(one.place, one.text, one.number) for one in sexagesimals(nodes([str(tmp_path / "hosts.yml")]))]

    assert found == [("hosts.yml:1", "1:30", "90"), ("group_vars/all.yml:2", "24:00:00", "86400")]


def test_files_and_directories_of_variables_are_found_for_a_file_and_for_a_directory(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "group_vars/all.yml",
        "group_vars/workers/a.yml",
        "host_vars/node1",
        "host_vars/node2.bak",
        "hosts.yml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    found = {
        source: [(file.path, file.kind, file.name) for file in variable_files([str(tmp_path / source)])]
        for source in ("hosts.yml", ".")
    }

    assert found["hosts.yml"] == found["."]
    assert found["."] == [
        ("group_vars/all.yml", "group", "all"),
        ("group_vars/workers", "group", "workers"),
        ("host_vars/node1", "host", "node1"),
    ]


def test_variables_that_ansible_would_skip_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "group_vars/all.yml",
        "group_vars/workers/a.yml",
        "hosts_vars/n1.yml",
        "group_vars.old/x.yml",
        "hosts.yml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "group_vars/workers/link.yml").symlink_to("a.yml")
    (tmp_path / "group_vars/workers/secret.yml").symlink_to("/nowhere/secret.yml")
    (tmp_path / "group_vars/.#all.yml").symlink_to("ann@laptop.4711")
    (tmp_path / "group_vars/notes.txt").symlink_to("/nowhere")
    (tmp_path / "host_vars").symlink_to("/nowhere")
    (tmp_path / "hardware").symlink_to("group_vars")
    (tmp_path / "files").symlink_to("/nowhere")
    monkeypatch.setattr("pathlib.Path.iterdir", refusing(tmp_path / "group_vars/closed", pathlib.Path.iterdir))
    (tmp_path / "group_vars/closed").mkdir()

    assert list(unread(["hosts.yml"])) == [
        (
            "files",
            "is a link to /nowhere, which does not exist, so Ansible skips it",
            "Bring the file back, or remove the link",
        ),
        ("group_vars/closed", "is a directory that you cannot read", "Change its mode or its owner"),
        (
            "group_vars/workers/secret.yml",
            "is a link to /nowhere/secret.yml, which does not exist, so Ansible skips it",
            "Bring the file back, or remove the link",
        ),
        (
            "host_vars",
            "is a link to /nowhere, which does not exist, so Ansible skips it",
            "Bring the file back, or remove the link",
        ),
        ("hosts_vars", "is a directory that Ansible does not read", "Did you mean host_vars?"),
    ]


def refusing(closed: pathlib.Path, listing: Callable[..., Any]) -> Callable[..., Any]:
    """Return a listing of directories that refuses one, as for another user than root."""

    def iterdir(path: pathlib.Path) -> Any:
        if path.absolute() == closed:
            raise PermissionError(str(path))
        return listing(path)

    return iterdir


def test_a_list_of_hosts_has_no_files() -> None:
    assert directories(["node1,node2"]) == []


def test_what_may_be_a_drop_in_is_described(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "files/health.d"
    (directory / "directory").mkdir(parents=True)
    for name, content, mode in (("good", "#!/bin/sh\n:\n", 0o755), ("text", "x" * 999, 0o644), (".hidden", "", 0o644)):
        (directory / name).write_text(content)
        (directory / name).chmod(mode)
    (directory / "link").symlink_to("good")
    (directory / "lost").symlink_to("nowhere")
    (tmp_path / "files/julia").mkdir()
    (tmp_path / "files/julia/archive").write_text("")

    assert {found.path.removeprefix("files/health.d/"): found for found in drop_ins("files")} == {
        name: DropIn(f"files/health.d/{name}", *seen)
        for name, *seen in (
            (".hidden", True, False, b""),
            ("directory", False, False, b""),
            ("good", True, True, b"#!/bin/sh\n"),
            ("link", True, True, b"#!/bin/sh\n"),
            ("lost", False, False, b""),
            ("text", True, False, b"x" * 256),
        )
    }


def test_a_site_without_files_has_no_drop_ins(tmp_path: pathlib.Path) -> None:
    assert list(drop_ins(str(tmp_path / "files"))) == []
