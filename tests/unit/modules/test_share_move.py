"""The steps of a move: each refuses what it must not touch, and a repeated one changes nothing."""

from __future__ import annotations

import pathlib
import stat
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.storage import disks, share, transfer, units

Run = Callable[..., Any]
ORIGINAL = "node3:/srv/share"


@pytest.fixture
def run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run_module: Run, load_module: Callable[[str], Any]
) -> Run:
    """Run a step on a machine whose keys, units and mounts are files of the test."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("")
    monkeypatch.setattr(load_module("share_move"), "LOCK", tmp_path / "lock")
    monkeypatch.setattr(disks, "PROC", tmp_path / "proc")
    monkeypatch.setattr(units, "UNITS", tmp_path / "units")
    monkeypatch.setattr(transfer, "RUN", tmp_path / "run")
    monkeypatch.setattr(transfer, "public_key", lambda name: f"ssh-ed25519 {name}")
    return lambda state, **arguments: run_module("share_move", state=state, **arguments)


def test_a_copy_is_marked_once(run: Run, tmp_path: pathlib.Path) -> None:
    arguments = {"directory": str(tmp_path / "new/share"), "original": ORIGINAL}
    outcome = run("begun", **arguments)

    assert outcome.changed
    assert share.original(str(tmp_path / "new/share")) == ORIGINAL
    assert stat.S_IMODE((tmp_path / "new/share" / share.MARK).stat().st_mode) == 0o700
    assert outcome.result["key"] == "ssh-ed25519 key"
    assert not run("begun", **arguments).changed


def test_a_directory_with_files_does_not_become_a_copy(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new/data").write_text("mine")

    assert (
        "to be empty or missing, it contains files"
        in run("begun", directory=str(tmp_path / "new"), original=ORIGINAL).message
    )
    assert not (tmp_path / "new" / share.MARK).exists()


def test_a_copy_of_another_share_is_refused(run: Run, tmp_path: pathlib.Path) -> None:
    run("begun", directory=str(tmp_path / "new"), original=ORIGINAL)

    said = run("begun", directory=str(tmp_path / "new"), original="node2:/srv/share").message
    assert f"incomplete copy of {ORIGINAL}" in said


def test_too_little_space_is_refused_before_the_mark(run: Run, tmp_path: pathlib.Path) -> None:
    said = run("begun", directory=str(tmp_path / "new"), original=ORIGINAL, bytes=2**60).message

    assert "of free space for the copy" in said
    assert not (tmp_path / "new" / share.MARK).exists()


def test_check_mode_writes_nothing(run: Run, tmp_path: pathlib.Path) -> None:
    assert run("begun", check=True, directory=str(tmp_path / "new"), original=ORIGINAL).changed
    assert not (tmp_path / "new").exists()


def test_files_are_copied_and_compared(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/file").write_text("text")
    run("begun", directory=str(tmp_path / "new"), original=ORIGINAL)
    arguments = {
        "source": str(tmp_path / "old"),
        "directory": str(tmp_path / "new"),
        "original": ORIGINAL,
        "final": True,
    }

    outcome = run("copied", **arguments)
    assert outcome.result["said"] == f"4 bytes copied from {ORIGINAL}, the checksums of all files are equal"
    assert (tmp_path / "new/file").read_text() == "text"
    assert not run("copied", **arguments).changed


def test_two_copies_do_not_run_at_once(run: Run, tmp_path: pathlib.Path, load_module: Callable[[str], Any]) -> None:
    with load_module("share_move").locked():
        said = run("copied", source=str(tmp_path), directory=str(tmp_path / "new"), original=ORIGINAL).message

    assert "an interrupted run is still copying" in said


def test_a_finished_copy_loses_its_mark_only(run: Run, tmp_path: pathlib.Path) -> None:
    run("begun", directory=str(tmp_path / "new"), original=ORIGINAL)
    (tmp_path / "new" / share.MARK / "files/file").write_text("text")

    assert run("ended", directory=str(tmp_path / "new")).changed
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]
    assert not run("ended", directory=str(tmp_path / "new")).changed


def test_a_machine_that_mounts_nothing_has_nothing_to_leave(run: Run) -> None:
    assert not run("left", paths=["/share"]).changed


MOUNTED = "30 22 0:45 / {place}/share rw shared:1 - nfs4 10.0.0.3:/srv/share rw"
UMOUNT = "#!/bin/sh\necho umount $* >> {place}/called\n: > {place}/proc/self/mountinfo\n"
BUSY = "#!/bin/sh\necho target is busy >&2\nexit 32\n"
SYSTEMCTL = """#!/bin/sh
echo systemctl $1 >> {place}/called
[ "$1" = stop ] || echo "{mounted}" > {place}/proc/self/mountinfo
"""
"""Something mounts the share again just before its automount is stopped."""


@pytest.fixture
def mounted(tmp_path: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Mount the share in the table of the test, with a program umount."""
    line = MOUNTED.format(place=tmp_path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setitem(disks.ENVIRONMENT, "PATH", f"{tmp_path}/bin:/usr/bin:/bin")

    def mount(umount: str) -> None:
        (tmp_path / "proc/self/mountinfo").write_text(f"{line}\n")
        for name, text in {"umount": umount, "systemctl": SYSTEMCTL}.items():
            (tmp_path / "bin" / name).write_text(text.format(place=tmp_path, mounted=line))
            (tmp_path / "bin" / name).chmod(0o755)

    return mount


def test_a_share_that_is_mounted_again_meanwhile_is_left_too(
    run: Run, tmp_path: pathlib.Path, mounted: Callable[[str], None]
) -> None:
    mounted(UMOUNT)
    outcome = run("left", paths=[str(tmp_path / "share")])

    assert outcome.changed
    assert (tmp_path / "proc/self/mountinfo").read_text() == ""
    called = [line.split()[:2] for line in (tmp_path / "called").read_text().splitlines()]
    assert [words[0] for words in called] == ["umount", "systemctl", "systemctl", "umount"]


def test_a_busy_share_is_not_detached(
    run: Run,
    tmp_path: pathlib.Path,
    mounted: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    load_module: Callable[[str], Any],
) -> None:
    mounted(BUSY)
    monkeypatch.setattr(load_module("share_move"), "BUSY", 0)

    assert "cannot be unmounted: target is busy" in run("left", paths=[str(tmp_path / "share")]).message
    assert not (tmp_path / "called").exists()


def test_an_interrupted_end_of_the_export_is_completed(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, load_module: Callable[[str], Any]
) -> None:
    called: list[str] = []

    def check(command: list[str]) -> str:
        called.append(" ".join(command))
        if len(called) == 1:
            raise disks.DiskError("killed")
        return ""

    monkeypatch.setattr(share, "EXPORTS", tmp_path / "slurmstead.exports")
    monkeypatch.setattr(transfer, "stop", lambda: None)
    monkeypatch.setattr(load_module("share_move"), "check", check)
    (tmp_path / "slurmstead.exports").write_text("/srv/share 10.0.0.1(ro)\n")
    arguments = {"source": "/srv/share", "original": ORIGINAL}

    assert run("retired", **arguments).message == "killed"
    assert run("retired", **arguments).changed
    assert called == ["exportfs -r", "exportfs -r", "exportfs -s", "systemctl disable --now nfs-server.service"]
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []
    assert not run("retired", **arguments).changed


def test_the_size_of_the_original_is_measured(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/file").write_bytes(bytes(2**20))

    outcome = run("used", source=str(tmp_path / "old"))
    assert outcome.result["bytes"] >= 2**20
    assert outcome.result["problems"] == []


def test_an_original_whose_disk_is_missing_does_not_empty_its_copy(run: Run, tmp_path: pathlib.Path) -> None:
    source, directory = tmp_path / "old", tmp_path / "new"
    source.mkdir()

    (problem,) = run("used", source=str(source)).result["problems"]
    assert problem.startswith(f"{source} contains no files")
    frozen = run("frozen", source=str(source))
    assert frozen.failed
    assert frozen.message == problem
    assert not (tmp_path / "units").exists()
    assert not directory.exists()
