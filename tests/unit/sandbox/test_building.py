"""Images on a disk: what others may do with their files, and what a killed command leaves."""

from __future__ import annotations

import json
import os
import pathlib
import tarfile

import pytest

from ansible.module_utils.slurmstead.sandbox import building, images


@pytest.fixture
def store(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with an image `python` of ours and one that was made by hand."""
    for name in ("python", "own"):
        (tmp_path / name / "rootfs").mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
    note = {"source": "Debian bookworm", "made": "2026-11-26T10:00:00+00:00", "bytes": 7}
    (tmp_path / "python/image.json").write_text(json.dumps(note))
    return tmp_path


def names(store: pathlib.Path) -> list[str]:
    return [str(image["name"]) for image in images.listed(store)]


def test_a_tree_is_roots_and_read_only(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    for name, mode in (("su", 0o4755), ("shadow", 0o600), ("wall", 0o2711)):
        (tmp_path / name).write_text("x" * 5000)
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to("/etc/shadow")
    os.mkfifo(tmp_path / "pipe")

    size = building.protect(tmp_path)

    found = {path.name: oct(path.lstat().st_mode & 0o7777) for path in tmp_path.iterdir() if not path.is_symlink()}
    assert found == {"tmp": "0o755", "su": "0o755", "shadow": "0o644", "wall": "0o755"}
    assert {path.lstat().st_uid for path in tmp_path.iterdir()} == {0}
    assert size >= 15000


def test_images_are_listed_and_nothing_else(store: pathlib.Path) -> None:
    (store / ".new-x/rootfs").mkdir(parents=True)
    (store / ".new-x/config.json").write_text("{}")
    (store / "notes").mkdir()

    found = images.listed(store)

    assert [(image["name"], image["source"], image["bytes"]) for image in found] == [
        ("own", "made by hand", 0),
        ("python", "Debian bookworm", 7),
    ]


def test_an_image_in_use_stays(store: pathlib.Path) -> None:
    with pytest.raises(images.ImageError, match=r"used by job 7, 9: wait until they have ended"):
        building.remove(str(store), "python", ["7", "9"])

    assert names(store) == ["own", "python"]


def test_a_wrong_name_is_answered_with_the_right_ones(store: pathlib.Path) -> None:
    with pytest.raises(images.ImageError, match=r"no image pyhton: the images are own, python"):
        building.remove(str(store), "pyhton", [])


def test_what_a_killed_command_left_goes_with_the_next(store: pathlib.Path) -> None:
    (store / ".new-x/rootfs").mkdir(parents=True)
    (store / ".old-y").mkdir()

    building.remove(str(store), "python", [])

    assert sorted(path.name for path in store.iterdir()) == [".lock", "own"]


def test_an_image_is_never_replaced(store: pathlib.Path) -> None:
    with pytest.raises(images.ImageError, match="the image python exists"):
        building.build(str(store), name="python")

    assert names(store) == ["own", "python"]


def test_two_commands_do_not_meet(store: pathlib.Path) -> None:
    with building.locked(store), pytest.raises(images.ImageError, match="another command is making or removing"):
        building.remove(str(store), "python", [])

    assert names(store) == ["own", "python"]


@pytest.mark.parametrize("members", [["a", "b"], None])
def test_a_file_that_is_not_an_image_leaves_nothing(store: pathlib.Path, members: list[str] | None) -> None:
    archive = store.parent / "archive.tar"
    archive.write_text("no tar file")
    if members:
        with tarfile.open(archive, "w") as packed:
            for name in members:
                packed.add(store / "own/config.json", name)
    given = store.parent / "given.tar"
    with tarfile.open(given, "w") as packed:
        packed.add(archive, "archive.tar")

    with pytest.raises(images.ImageError, match=r"^r\.tar: it is (not an image|a tar file, but not an image)"):
        building.build(str(store), name="r", given=str(given), archive="r.tar")

    assert sorted(path.name for path in store.iterdir()) == [".lock", "own", "python"]
    assert not given.exists()


def test_what_was_given_for_an_image_that_exists_is_removed(store: pathlib.Path) -> None:
    given = store.parent / "given.tar"
    given.touch()

    with pytest.raises(images.ImageError, match="the image own exists"):
        building.build(str(store), name="own", given=str(given), archive="r.tar")

    assert not given.exists()
