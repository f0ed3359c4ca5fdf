"""A version of Julia is complete or not there, and is the one that was meant."""

from __future__ import annotations

import hashlib
import io
import pathlib
import stat
import tarfile
from collections.abc import Callable
from typing import Any

import pytest

RunModule = Callable[..., Any]


SCRIPT = b"#!/bin/sh\necho julia\n"


def packed(path: pathlib.Path, program: str = "bin/julia", code: bytes = SCRIPT) -> dict[str, Any]:
    """Make an archive as Julia publishes them; return what the inventory says of it."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {program: code, "share/doc.txt": b"doc"}.items():
            member = tarfile.TarInfo(f"julia-1.10.5/{name}")
            # As packed under another umask.
            member.size, member.mode = len(content), 0o777 if name == program else 0o666
            archive.addfile(member, io.BytesIO(content))
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"version": "1.10.5", "architecture": "x86_64", "sha256": checksum, "file": str(path)}


@pytest.fixture
def archive(tmp_path: pathlib.Path) -> dict[str, Any]:
    """An archive of 1.10.5 for x86_64."""
    return packed(tmp_path / "julia.tar.gz")


@pytest.fixture
def install(run_module: RunModule, tmp_path: pathlib.Path) -> Callable[..., Any]:
    """Install archives into `julia`."""

    def run(*archives: dict[str, Any], **more: Any) -> Any:
        given = {"directory": str(tmp_path / "julia"), "source": (tmp_path / "published").as_uri(), **more}
        return run_module("julia_versions", archives=list(archives), **given)

    return run


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    """Where Julia is installed."""
    return tmp_path / "julia"


def names(directory: pathlib.Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_version_stands_under_its_name_and_is_the_default(
    install: Callable[..., Any], directory: pathlib.Path, archive: dict[str, Any]
) -> None:
    outcome = install(archive)

    assert outcome.changed
    assert names(directory) == ["1.10.5-x86_64", "default-x86_64", "depot"]
    assert (directory / "default-x86_64/bin/julia").read_text().endswith("echo julia\n")


def test_what_was_packed_with_open_modes_is_for_root_to_write(
    install: Callable[..., Any], directory: pathlib.Path, archive: dict[str, Any]
) -> None:
    install(archive)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.glob("1.10.5-x86_64/*/*")}

    assert modes == {"julia": 0o755, "doc.txt": 0o644}


def test_a_second_run_changes_nothing(install: Callable[..., Any], archive: dict[str, Any]) -> None:
    install(archive)
    pathlib.Path(archive["file"]).unlink()

    assert not install(archive).changed


def test_a_dry_run_says_what_it_would_do_and_does_nothing(
    install: Callable[..., Any], directory: pathlib.Path, archive: dict[str, Any]
) -> None:
    outcome = install(archive, check=True)

    assert outcome.diff == f"{directory}/1.10.5-x86_64\n{directory}/default-x86_64 -> 1.10.5-x86_64"
    assert not directory.exists()


def test_another_archive_than_was_meant_is_not_unpacked(
    install: Callable[..., Any], directory: pathlib.Path, archive: dict[str, Any]
) -> None:
    outcome = install({**archive, "sha256": "0" * 64})

    assert f"has the SHA-256 {archive['sha256']}, but {'0' * 64} is declared; nothing was unpacked" in outcome.message
    assert names(directory) == ["depot"]


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_what_cannot_be_unpacked_leaves_nothing(
    install: Callable[..., Any], directory: pathlib.Path, archive: dict[str, Any], content: bytes
) -> None:
    pathlib.Path(archive["file"]).write_bytes(content)
    outcome = install({**archive, "sha256": hashlib.sha256(content).hexdigest()})

    assert outcome.failed
    assert names(directory) == ["depot"]


def test_an_archive_without_julia_is_refused(
    install: Callable[..., Any], directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    outcome = install(packed(tmp_path / "other.tar.gz", program="bin/python"))

    assert "has no program bin/julia" in outcome.message
    assert names(directory) == ["depot"]


def elf(machine: int) -> bytes:
    """Return how a program of ELF begins on a machine that counts from the little end (elf(5))."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00" + machine.to_bytes(2, "little") + bytes(44)


def test_a_program_for_another_architecture_is_refused(
    install: Callable[..., Any], directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    outcome = install(packed(tmp_path / "arm.tar.gz", code=elf(183)))

    assert "has a program for aarch64; declare that architecture" in outcome.message
    assert names(directory) == ["depot"]


def test_a_program_for_the_declared_architecture_is_installed(
    install: Callable[..., Any], directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    install({**packed(tmp_path / "arm.tar.gz", code=elf(183)), "architecture": "aarch64"})

    assert names(directory) == ["1.10.5-aarch64", "default-aarch64", "depot"]


def test_what_a_run_left_that_was_ended_goes(
    install: Callable[..., Any], directory: pathlib.Path, archive: dict[str, Any]
) -> None:
    (directory / ".new-x7/julia/bin").mkdir(parents=True)
    (directory / ".new-default-x86_64").symlink_to("nowhere")
    install(archive)

    assert names(directory) == ["1.10.5-x86_64", "default-x86_64", "depot"]


def test_the_first_version_of_an_architecture_is_the_default(
    install: Callable[..., Any], directory: pathlib.Path, archive: dict[str, Any]
) -> None:
    newer = {**archive, "version": "1.11.0"}
    other = {**archive, "architecture": "aarch64"}
    install(archive, newer, other)
    before = (directory / "default-x86_64").readlink()
    outcome = install(newer, archive, other)

    assert (str(before), outcome.changed) == ("1.10.5-x86_64", True)
    assert str((directory / "default-x86_64").readlink()) == "1.11.0-x86_64"
    assert str((directory / "default-aarch64").readlink()) == "1.10.5-aarch64"


def test_an_archive_without_a_file_is_fetched(
    install: Callable[..., Any], directory: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    published = tmp_path / "published/linux/x64/1.10/julia-1.10.5-linux-x86_64.tar.gz"
    published.parent.mkdir(parents=True)
    archive = packed(published)
    del archive["file"]

    assert install(archive).changed
    assert (directory / "1.10.5-x86_64/bin/julia").exists()


def test_an_archive_that_is_nowhere_says_where_it_was_looked_for(
    install: Callable[..., Any], archive: dict[str, Any]
) -> None:
    outcome = install({**archive, "file": None})

    assert "published/linux/x64/1.10/julia-1.10.5-linux-x86_64.tar.gz" in outcome.message
    assert "name it as `file`" in outcome.message
