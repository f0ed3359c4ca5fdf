"""The module that makes volumes, for a volume in a file: the files and mkfs are real, the mount is a table of the test.

tests/lab/disks mounts one.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.storage import disks, filesystems, images, inspection, share, units

Run = Callable[..., Any]

SYSTEMCTL = """#!/bin/sh
[ "$1" = start ] || exit 0
unit={place}/units/$2
what=$(/bin/sed -n 's/^What=//p' "$unit") where=$(/bin/sed -n 's/^Where=//p' "$unit")
echo "30 22 7:9 / $where rw shared:1 - ext4 $what rw" > {place}/proc/self/mountinfo
echo "$what" > {place}/sys/dev/block/7:9/loop/backing_file
"""
"""Mounts a unit in the test's table of mounts; resize2fs accepts the image in place of its device."""


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A machine below a directory: no mounts, the tools of ext4, and a systemctl that only knows `start`."""
    for name in ("units", "proc/self", "sys/dev/block/7:9/loop", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("")
    for tool in ("mkfs.ext4", "resize2fs"):
        found = shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin")
        assert found, f"install e2fsprogs, for {tool}"
        (tmp_path / "bin" / tool).symlink_to(found)
    for name, text in {"systemctl": SYSTEMCTL.format(place=tmp_path), "udevadm": "#!/bin/sh\n"}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "bin/losetup").symlink_to(tmp_path / "bin/udevadm")
    monkeypatch.setattr(units, "UNITS", tmp_path / "units")
    monkeypatch.setattr(disks, "PROC", tmp_path / "proc")
    monkeypatch.setattr(disks, "SYS", tmp_path / "sys")
    monkeypatch.setattr(images, "DIRECTORY", tmp_path / "images")
    monkeypatch.setattr(images, "RESERVE", 0)
    monkeypatch.setattr(inspection, "FSTAB", tmp_path / "fstab")
    monkeypatch.setattr(share, "EXPORTS", tmp_path / "exports")
    monkeypatch.setitem(disks.ENVIRONMENT, "PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    return tmp_path


@pytest.fixture
def run(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run_module: Run, load_module: Callable[[str], Any]
) -> Run:
    module = load_module("local_volume")
    monkeypatch.setattr(module, "LOCK", place / "lock")
    names = {"volume_group": "share", "logical_volume": "share", "path": str(place / "share"), "image_size": "64M"}
    return lambda **arguments: run_module("local_volume", **{**names, **arguments})


def image(place: pathlib.Path) -> pathlib.Path:
    return images.path(str(place / "share"))


def check(path: pathlib.Path) -> str:
    """Return what e2fsck(8) says of a file system that is not mounted."""
    done = subprocess.run(["/sbin/e2fsck", "-f", "-n", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_new_share_gets_a_file_system_of_its_own_with_all_of_its_space(run: Run, place: pathlib.Path) -> None:
    outcome = run()

    assert outcome.changed, outcome.message
    state = image(place).stat()
    assert state.st_size == 64 * 2**20
    assert state.st_blocks * 512 >= state.st_size, "its space is not reserved"
    assert state.st_mode & 0o777 == 0o600
    assert (
        "Options=loop,nodev,nosuid,noatime"
        in (place / "units" / f"{units.escape(str(place / 'share'))}.mount").read_text()
    )
    assert check(image(place))


def test_a_second_run_changes_nothing(run: Run) -> None:
    run()
    outcome = run()

    assert outcome.result["actions"] == []
    assert not outcome.changed


def test_check_mode_says_what_would_be_done_and_does_nothing(run: Run, place: pathlib.Path) -> None:
    outcome = run(check=True)

    assert f"make the file {image(place)} of 64.0 MiB with the file system" in outcome.result["actions"]
    assert not (place / "images").exists()


def test_a_directory_with_files_stays_one_and_is_reported(
    run: Run, place: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _, text: warned.append(text))
    (place / "share/home").mkdir(parents=True)
    run()

    assert not image(place).exists()
    assert len(warned) == 1
    assert "scripts/stead move-share" in warned[0]


def test_a_directory_that_is_exported_already_stays_one(run: Run, place: pathlib.Path) -> None:
    (place / "share").mkdir()
    (place / "exports").write_text(f"{place}/share 10.0.0.1(rw)\n")
    run()

    assert not image(place).exists()


def test_what_an_administrator_mounts_there_stays(run: Run, place: pathlib.Path) -> None:
    (place / "fstab").write_text(f"UUID=1 {place}/share ext4 defaults 0 2\n")
    run()

    assert not image(place).exists()


def test_an_interrupted_creation_is_repeated(run: Run, place: pathlib.Path) -> None:
    part = image(place).with_suffix(".part")
    part.parent.mkdir()
    part.write_bytes(b"torn")
    run()

    assert check(image(place))
    assert not part.exists()


@pytest.mark.parametrize("size", ["64M", "auto"])
def test_what_an_interrupted_creation_has_reserved_counts_as_free(
    run: Run, place: pathlib.Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    part = image(place).with_suffix(".part")
    part.parent.mkdir()
    part.write_bytes(b"x" * 64 * 2**20)
    monkeypatch.setattr(images, "RESERVE", 32 * 2**20)
    monkeypatch.setattr(images, "free_bytes", lambda directory: 64 * 2**20 if part.exists() else 128 * 2**20)
    outcome = run(image_size=size)

    assert not outcome.failed, outcome.message
    assert image(place).stat().st_size == 64 * 2**20


@pytest.mark.slow
def test_files_in_the_mount_point_of_an_image_are_not_hidden(run: Run, place: pathlib.Path) -> None:
    image(place).parent.mkdir()
    image(place).write_bytes(bytes(64 * 2**20))
    (place / "share/home").mkdir(parents=True)

    assert "found 1 entries that would be hidden" in run().message


def test_a_larger_size_enlarges_the_file_system(run: Run, place: pathlib.Path) -> None:
    run()
    outcome = run(image_size="96M")

    assert not outcome.failed, outcome.message
    with image(place).open("rb") as file:
        assert filesystems.ext4_size(file.read(4096)) == 96 * 2**20
    assert not run(image_size="96M").changed


def test_a_smaller_size_is_refused_before_anything_is_changed(run: Run, place: pathlib.Path) -> None:
    run(image_size="96M")
    outcome = run(image_size="64M", state="probe")

    assert "expected a size of at least 96M" in outcome.result["problems"][0]
    assert image(place).stat().st_size == 96 * 2**20


def test_new_options_are_mounted_even_if_the_run_ends_after_they_are_written(run: Run, place: pathlib.Path) -> None:
    run()
    for name, text in {"mount": f"echo $* >> {place}/mounted", "systemctl": "exit 1"}.items():
        (place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / "bin" / name).chmod(0o755)
    assert run(options=["nodev"]).failed
    run(options=["nodev"])

    assert f"-o remount,nodev {place}/share" in (place / "mounted").read_text()


def test_something_else_that_is_mounted_there_is_refused(run: Run, place: pathlib.Path) -> None:
    run()
    (place / "sys/dev/block/7:9/loop/backing_file").write_text("/another.img")

    assert "unmount it, or choose another path" in run().message


def test_without_a_size_it_is_a_directory(run: Run, place: pathlib.Path) -> None:
    outcome = run(image_size="")

    assert outcome.result["actions"] == [f"make the directory {place}/share"]


@pytest.mark.parametrize("size", ["1", "0G", "1K", "half"])
def test_a_size_that_cannot_be_is_named(run: Run, size: str) -> None:
    assert run(image_size=size).message.startswith("image_size: expected auto, or a number with M, G or T")
