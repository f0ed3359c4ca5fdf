"""The module that makes volumes, as far as a machine without LVM shows it; tests/lab/test_disks.py has the rest."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any

import local_volume
import pytest
from ansible.module_utils.testing import patch_module_args

from ansible.module_utils.slurmstead.storage import disks

DISK = "/dev/disk/by-id/ata-A"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the module ended; `result` is what it returned."""

    failed: bool
    result: dict[str, Any]

    @property
    def changed(self) -> bool:
        """Whether it says that it changed something."""
        return bool(self.result["changed"])

    @property
    def message(self) -> str:
        """Why it failed."""
        return str(self.result["msg"])


Run = Callable[..., Outcome]
"""Run the module with arguments; `check` is check mode."""


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the module for `scratch` below tmp_path, without LVM; its units and lock are files of the test."""
    (tmp_path / "units").mkdir()
    monkeypatch.setattr(local_volume, "UNITS", tmp_path / "units")
    monkeypatch.setattr(local_volume, "LOCK", tmp_path / "lock")
    monkeypatch.setitem(disks.ENVIRONMENT, "PATH", str(tmp_path))
    names = {"volume_group": "scratch", "logical_volume": "scratch", "path": str(tmp_path / "scratch")}

    def run(check: bool = False, **arguments: object) -> Outcome:
        given = {"_ansible_check_mode": check, "_ansible_remote_tmp": str(tmp_path), **names, **arguments}
        capsys.readouterr()
        with patch_module_args(given), pytest.raises(SystemExit) as ended:
            local_volume.main()
        return Outcome(ended.value.code != 0, json.loads(capsys.readouterr().out))

    return run


def test_without_disks_it_is_a_directory(run: Run, tmp_path: pathlib.Path) -> None:
    outcome = run(path=str(tmp_path / "srv/scratch"), mode="0711")
    assert outcome.changed
    assert (tmp_path / "srv/scratch").stat().st_mode & 0o7777 == 0o711


def test_a_second_run_is_silent(run: Run, tmp_path: pathlib.Path) -> None:
    run(mode="0711")
    outcome = run(mode="0711")
    assert not outcome.changed
    assert outcome.result["actions"] == []


def test_another_mode_is_set(run: Run, tmp_path: pathlib.Path) -> None:
    run(mode="0711")
    assert run(mode="0755").result["actions"] == [f"set the mode of {tmp_path}/scratch to 0755"]


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
    unit = local_volume.unit_name(str(tmp_path / "scratch"), "mount")
    (tmp_path / "units" / unit).write_text("")
    assert "expected disks for" in run().message


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
    monkeypatch.setattr(disks, "findings", lambda disk: list(found))
    return found


def test_check_mode_foretells_a_new_volume(run: Run, tmp_path: pathlib.Path, blank_disk: list[str]) -> None:
    outcome = run(disks=[DISK], check=True)
    assert not outcome.failed, outcome.message
    expected = [
        "a physical volume",
        "the volume group",
        "the logical volume",
        "the file system",
        "scratch.mount",
        "mount it",
    ]
    actions = "\n".join(outcome.result["actions"])
    assert [part for part in expected if part not in actions] == []
    assert list((tmp_path / "units").iterdir()) == []


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
    monkeypatch.setattr(disks, "findings", lambda disk: next(answers))
    assert "found signature ext4. Nothing was written" in run(disks=[DISK]).message


def test_a_directory_with_files_is_not_hidden(run: Run, tmp_path: pathlib.Path, blank_disk: list[str]) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "thesis.tex").write_text("x")
    assert "found 1 entries that would be hidden" in run(disks=[DISK]).message


def test_what_is_mounted_there_is_left(
    run: Run, tmp_path: pathlib.Path, blank_disk: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "scratch")
    monkeypatch.setattr(disks, "mounts", lambda: [disks.Mount("8:17", path, "btrfs", "/dev/sdb1")])
    assert "found /dev/sdb1 (btrfs): unmount it" in run(disks=[DISK]).message


def test_two_runs_wait_for_each_other(run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_volume, "LOCK_DEADLINE", 0)
    monkeypatch.setattr(local_volume.time, "sleep", lambda seconds: None)
    with local_volume.locked(True):
        assert "expected nobody else at the disks" in run().message
    assert run().changed


def test_a_tool_that_outlives_its_run_holds_the_lock(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(disks.ENVIRONMENT, "PATH", "/usr/bin:/bin")
    monkeypatch.setattr(local_volume, "LOCK_DEADLINE", 0)
    monkeypatch.setattr(local_volume.time, "sleep", lambda seconds: None)
    with local_volume.locked(True) as inherit:
        done = disks.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], deadline=10, inherit=inherit)
    try:
        assert "expected nobody else at the disks" in run().message
    finally:
        local_volume.os.kill(int(done.stdout), 9)


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
