"""The role julia with archives made for it: a script replaces Julia's own program."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurmstead.paths import PLAYBOOKS

OLD, NEW = "1.10.5", "1.11.1"

Install = Callable[..., Any]


@pytest.fixture(scope="module")
def archive(lab: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """Make the archive of a version, and return what the inventory says of it."""
    directory = tmp_path_factory.mktemp("archives")
    machine = lab.user("uname -m").strip()

    def make(version: str) -> dict[str, Any]:
        path: Path = directory / f"julia-{version}.tar.gz"
        program = f'#!/bin/sh\necho "stand-in {version} $*"\n'.encode()
        with tarfile.open(path, "w:gz") as packed:
            member = tarfile.TarInfo(f"julia-{version}/bin/julia")
            member.size, member.mode = len(program), 0o755
            packed.addfile(member, io.BytesIO(program))
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        return {"version": version, "architecture": machine, "sha256": checksum, "file": str(path)}

    return make


@pytest.fixture(scope="module")
def install(lab: Any) -> Iterator[Install]:
    """Run the playbook for archives, of which nothing is left in the end."""
    try:
        yield lambda *archives: lab.ansible(
            "--extra-vars", json.dumps({"julia_archives": archives}), str(PLAYBOOKS / "install-julia.yml")
        )
    finally:
        lab.everywhere(lambda name: lab.root(name, "rm -f /usr/local/bin/julia"))
        lab.root(lab.server, "rm -rf /share/julia")


@pytest.fixture(scope="module")
def said(lab: Any) -> Callable[[], dict[str, str]]:
    """What the command prints for alice, by node."""
    return lambda: lab.everywhere(lambda name: lab.root(name, "runuser --user alice -- julia --version").strip())


def test_all_nodes_run_the_first_version_and_a_second_run_changes_nothing(
    lab: Any, install: Install, archive: Callable[[str], dict[str, Any]], said: Callable[[], dict[str, str]]
) -> None:
    versions = [archive(OLD), archive(NEW)]
    run = install(*versions)

    assert run.code == 0, run.output
    assert said() == dict.fromkeys(lab.names, f"stand-in {OLD} --version")
    again = install(*versions)
    assert (again.code, again.changed) == (0, {}), again.output


def test_another_order_is_another_default(
    lab: Any, install: Install, archive: Callable[[str], dict[str, Any]], said: Callable[[], dict[str, str]]
) -> None:
    run = install(archive(NEW), archive(OLD))

    assert run.code == 0, run.output
    assert said() == dict.fromkeys(lab.names, f"stand-in {NEW} --version")


def test_another_archive_than_was_meant_is_refused_and_leaves_nothing(
    lab: Any, install: Install, archive: Callable[[str], dict[str, Any]]
) -> None:
    run = install({**archive("1.12.0"), "sha256": "0" * 64})

    assert run.code != 0
    assert "is declared; nothing was unpacked" in run.output
    assert "1.12.0" not in lab.root(lab.server, "ls -A /share/julia")


def test_the_shared_depot_is_read_by_all_and_written_by_root(
    lab: Any, install: Install, archive: Callable[[str], dict[str, Any]]
) -> None:
    assert install(archive(OLD)).code == 0
    lab.root(lab.server, "echo everybody > /share/julia/depot/note")
    lab.user("until [ -e /share/julia/depot/note ]; do sleep 1; done", seconds=60)
    program = "cat /share/julia/depot/note; touch /share/julia/depot/mine 2>&1 || true"
    seen = lab.everywhere(lambda name: lab.root(name, f"runuser --user alice -- sh -c '{program}'"), lab.workers)

    assert all(text.startswith("everybody\n") and "Permission denied" in text for text in seen.values()), seen
