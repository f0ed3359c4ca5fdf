"""The module that makes volumes, as far as a machine without LVM shows it; tests/lab/test_disks.py has the rest."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.slurmstead.storage import blank, disks, freezing, inspection, mounts, units
from ansible.module_utils.slurmstead.storage.volumes import TAG, Group, LogicalVolume

DISK = "/dev/disk/by-id/ata-A"


Run = Callable[..., Any]
"""Run the module with arguments; `check` is check mode."""


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run_module: Run, module: Any) -> Run:
    """Run the module for `scratch` below tmp_path, without LVM; its units and lock are files of the test."""
    (tmp_path / "units").mkdir()
    monkeypatch.setattr(units, "UNITS", tmp_path / "units")
    monkeypatch.setattr(module, "LOCK", tmp_path / "lock")
    monkeypatch.setitem(disks.ENVIRONMENT, "PATH", str(tmp_path))
    names = {"volume_group": "scratch", "logical_volume": "scratch", "path": str(tmp_path / "scratch")}

    return lambda **arguments: run_module("local_volume", **{**names, **arguments})


@pytest.fixture
def module(load_module: Callable[[str], Any]) -> Any:
    """The module itself."""
    return load_module("local_volume")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """The module waits for no other run."""
    monkeypatch.setattr(module, "LOCK_DEADLINE", 0)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


def test_without_disks_it_is_a_directory(run: Run, tmp_path: pathlib.Path) -> None:
    outcome = run(path=str(tmp_path / "srv/scratch"), mode="0711")
    assert outcome.changed
    assert (tmp_path / "srv/scratch").stat().st_mode & 0o7777 == 0o711


def test_a_second_run_is_silent(run: Run, tmp_path: pathlib.Path) -> None:
    run(mode="0711")
    outcome = run(mode="0711")
    assert not outcome.changed
    assert outcome.result["actions"] == []


def test_a_directory_of_an_administrator_keeps_its_mode(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch").chmod(0o2770)
    assert not run(mode="0755").changed
    assert (tmp_path / "scratch").stat().st_mode & 0o7777 == 0o2770


def test_check_mode_says_what_would_be_done(run: Run, tmp_path: pathlib.Path) -> None:
    outcome = run(check=True)
    assert outcome.changed
    assert outcome.result["diff"]["after"] == f"make the directory {tmp_path}/scratch\n"
    assert not (tmp_path / "scratch").exists()


def test_probing_changes_nothing(run: Run, tmp_path: pathlib.Path) -> None:
    outcome = run(state="probe")
    assert not outcome.failed
    assert not outcome.changed
    assert not (tmp_path / "scratch").exists()


def test_a_file_in_the_way_is_refused(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "scratch").write_text("")
    assert "expected a directory or nothing, found a file" in run().message


def test_disks_that_are_not_declared_any_more_are_asked_for(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "units" / f"{units.escape(str(tmp_path / 'scratch'))}.mount").write_text("")
    assert "expected disks for" in run().message


def test_a_directory_that_a_move_made_read_only_is_one_still(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezing, "check", lambda command: "")
    (tmp_path / "scratch/home").mkdir(parents=True)
    freezing.keep(str(tmp_path / "scratch"), is_own=False)
    outcome = run(image_size="auto", state="probe")
    assert not outcome.failed, outcome.message


def test_a_volume_that_is_not_mounted_is_not_replaced(run: Run, tmp_path: pathlib.Path, blank_disk: list[str]) -> None:
    unit = tmp_path / "units" / f"{units.escape(str(tmp_path / 'scratch'))}.mount"
    unit.write_text("[Mount]\nWhat=/var/lib/slurmstead/scratch.img\n")
    outcome = run(disks=[DISK], state="probe")
    assert outcome.failed
    assert f"{unit} mounts /var/lib/slurmstead/scratch.img, which" in outcome.message
    unit.write_text("[Mount]\nWhat=/dev/scratch/scratch\n")
    assert not run(disks=[DISK], state="probe").failed


@pytest.mark.parametrize("state", ["present", "probe"])
def test_every_bad_name_is_named(run: Run, tmp_path: pathlib.Path, state: str) -> None:
    outcome = run(disks=["/dev/sda", "/dev/disk/by-id/none"], state=state)
    assert outcome.failed
    first, second = outcome.result["problems"]
    assert first.startswith("/dev/sda: expected a name that stays with the disk")
    assert second.startswith("/dev/disk/by-id/none: expected a disk")
    assert not (tmp_path / "scratch").exists()


@pytest.fixture
def blank_disk(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A blank disk of this machine; returns what is found on it, to be changed."""
    found: list[str] = []
    disk = disks.Disk(DISK, "/dev/sda", "8:0", 2**30, 512, "CT1000", "2117")
    monkeypatch.setattr(disks, "resolve", lambda name: disk)
    monkeypatch.setattr(blank, "findings", lambda disk: list(found))
    return found


def test_check_mode_foretells_a_new_volume(run: Run, tmp_path: pathlib.Path, blank_disk: list[str]) -> None:
    outcome = run(disks=[DISK], check=True)
    assert not outcome.failed, outcome.message
    expected = ("a physical volume", "the volume group", "the logical volume", "the file system", ".mount", "mount it")
    assert [part for part in expected if part not in outcome.result["diff"]["after"]] == []
    assert list((tmp_path / "units").iterdir()) == []


def test_a_disk_is_told_from_its_other_names(run: Run, blank_disk: list[str]) -> None:
    assert run(disks=[DISK], state="probe").result["devices"] == {"8:0": DISK}


def test_a_disk_that_is_not_blank_is_refused(run: Run, tmp_path: pathlib.Path, blank_disk: list[str]) -> None:
    blank_disk.append("signature ext4")
    outcome = run(disks=[DISK])
    assert outcome.failed
    assert (
        f"{DISK} (/dev/sda, CT1000, serial 2117, 1.0 GiB): expected a blank disk, found signature ext4"
        in outcome.message
    )
    assert not outcome.changed


def test_a_disk_that_is_written_meanwhile_is_refused(
    run: Run, tmp_path: pathlib.Path, blank_disk: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([[], ["signature ext4"]])
    monkeypatch.setattr(blank, "findings", lambda disk: next(answers))
    assert "found signature ext4. Nothing was written" in run(disks=[DISK]).message


def test_a_directory_with_files_is_not_hidden(run: Run, tmp_path: pathlib.Path, blank_disk: list[str]) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "thesis.tex").write_text("x")
    assert "found 1 entries that would be hidden" in run(disks=[DISK]).message


def test_what_is_mounted_there_is_left(
    run: Run, tmp_path: pathlib.Path, blank_disk: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "scratch")
    monkeypatch.setattr(mounts, "mounts", lambda: [mounts.Mount("8:17", path, "btrfs", "/dev/sdb1")])
    assert "found /dev/sdb1 (btrfs): unmount it" in run(disks=[DISK]).message


@pytest.mark.usefixtures("impatient")
def test_two_runs_wait_for_each_other(run: Run, module: Any) -> None:
    with module.locked():
        assert "expected no other run to use the disks" in run().message
    assert run().changed


@pytest.mark.usefixtures("impatient")
def test_a_tool_that_outlives_its_run_holds_the_lock(run: Run, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(disks.ENVIRONMENT, "PATH", "/usr/bin:/bin")
    with module.locked() as inherit:
        done = disks.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], deadline=10, inherit=inherit)
    try:
        assert "expected no other run to use the disks" in run().message
    finally:
        os.kill(int(done.stdout), 9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"volume_group": "a-b"}, "volume_group: expected letters"),
        ({"logical_volume": ""}, "logical_volume: expected letters"),
        ({"mode": "rwx"}, "mode: expected an octal mode"),
        ({"path": "/a b"}, "path: expected an absolute path"),
        ({"path": "/"}, "path: expected an absolute path"),
        ({"path": "/a/../b"}, "path: expected an absolute path"),
    ],
)
def test_arguments_that_cannot_be_are_named(run: Run, arguments: dict[str, str], message: str) -> None:
    outcome = run(**arguments)
    assert outcome.failed
    assert outcome.message.startswith(message)


def test_a_volume_that_is_mounted_elsewhere_is_not_mounted_twice(
    run: Run, tmp_path: pathlib.Path, blank_disk: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = frozenset({TAG})
    group = Group("scratch", "uuid", tags, 0, 0, (), {"scratch": LogicalVolume(tags, 2**30)})
    monkeypatch.setattr(inspection.Inspection, "read_groups", lambda self: self.groups.append(group))
    monkeypatch.setattr(inspection.Inspection, "number", "253:0")
    monkeypatch.setattr(mounts, "mounts", lambda: [mounts.Mount("253:0", "/old", "ext4", "/dev/mapper/a")])
    assert "to be mounted there only, it is mounted at /old" in run(disks=[DISK], state="probe").message
