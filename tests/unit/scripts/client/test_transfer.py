"""Files as rsync really copies them; what takes the place of ssh runs its command on this computer."""

import contextlib
import os
import pathlib
from collections.abc import Iterable

import pytest

from slurmstead.client import files, transfer
from slurmstead.client.connection import Connection
from slurmstead.client.head import Head
from slurmstead.errors import MachineError, UnreachableError

SSH = """#!/bin/sh
while [ "$1" != h ]; do shift; done
shift
exec sh -c "$*"
"""

CUT = """#!/bin/sh
while [ "$1" != h ]; do shift; done
shift
exec 3<&0
sh -c "exec $*" <&3 &
until find '{place}' -name '*big.*' | grep . >'{place}/seen'; do sleep 0.01; done
kill $!
"""
"""An ssh that ends the other side as soon as a file has begun to arrive, and says where that is."""

ODD = ["-rf", "a b", "new\nline", "quote'\"", "#hash", "*", "ü", "é\udcff\udc80", " lead", "$HOME"]


@pytest.fixture
def connection(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """Return a way to a head node that is this computer."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return Connection(Head("h"))


@pytest.mark.parametrize(
    ("said", "is_good"),
    [
        ("rsync  version 3.1.3  protocol version 31", True),
        ("rsync  version v3.2.3  protocol version 31", True),
        ("rsync  version 3.1.2  protocol version 31", False),
        ("openrsync: protocol version 29\nrsync version 2.6.9 compatible", False),
    ],
)
def test_an_old_rsync_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, said: str, is_good: bool
) -> None:
    (tmp_path / "rsync").write_text(f"#!/bin/sh\necho '{said}'\n")
    (tmp_path / "rsync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with contextlib.nullcontext() if is_good else pytest.raises(MachineError, match="expected rsync 3.1.3 or newer"):
        transfer.check_rsync()


def push(
    connection: Connection, folder: pathlib.Path, target: pathlib.Path, like: Iterable[pathlib.Path] = ()
) -> list[float]:
    """Copy a whole folder and return what is reported."""
    seen: list[float] = []
    names = [os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names]
    for directory in (target, target.parent / "incoming"):
        directory.mkdir(parents=True, exist_ok=True)
    transfer.push(connection, folder, names, str(target), map(str, like), f"{target.parent}/incoming", seen.append)
    return seen


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# 5 s of a CPU; the other tests copy a few files.
@pytest.mark.slow
def test_ten_thousand_small_files_go_and_come_with_progress(
    connection: Connection, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "many").mkdir()
    for number in range(10_000):
        (tmp_path / "many" / str(number)).write_text(f"{number}\n")
    seen = push(connection, tmp_path / "many", tmp_path / "cluster")
    monkeypatch.chdir(tmp_path)
    back = pathlib.Path("a:b")
    transfer.pull(connection, str(tmp_path / "cluster"), os.listdir(tmp_path / "many"), back, seen.append)

    assert contents(back) == contents(tmp_path / "many")
    assert seen[-1] == 1.0
    assert len(set(seen)) > 2


def test_only_what_changed_is_copied_again(connection: Connection, tmp_path: pathlib.Path) -> None:
    (tmp_path / "project" / "data").mkdir(parents=True)
    for name in ("main.py", "data/a", "data/b"):
        (tmp_path / "project" / name).write_text(name)
    push(connection, tmp_path / "project", tmp_path / "first")
    # As long as before, and within the same second.
    (tmp_path / "project" / "main.py").write_text("changed")
    push(connection, tmp_path / "project", tmp_path / "second", [tmp_path / "first"])

    copied = {path.name for path in (tmp_path / "second").rglob("*") if path.is_file() and path.stat().st_nlink == 1}
    assert copied == {"main.py"}
    assert contents(tmp_path / "second") == contents(tmp_path / "project")
    assert (tmp_path / "first" / "main.py").read_text() == "main.py"


def test_a_file_that_is_half_copied_is_none_of_the_run(connection: Connection, tmp_path: pathlib.Path) -> None:
    (tmp_path / "bin" / "ssh").write_text(CUT.format(place=tmp_path / "share"))
    for name in ("project", "share"):
        (tmp_path / name).mkdir()
    with open(tmp_path / "project" / "big", "wb") as file:
        file.truncate(2**31)
    with pytest.raises(UnreachableError):
        push(connection, tmp_path / "project", tmp_path / "share" / "input")

    (seen,) = (tmp_path / "share" / "seen").read_text().splitlines()
    assert pathlib.Path(seen).parent.name == "incoming"


def test_what_an_ignore_file_excludes_stays_here(connection: Connection, tmp_path: pathlib.Path) -> None:
    """With a directory's name rsync would copy what is in it."""
    folder = tmp_path / "folder"
    (folder / "data" / "below").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / ".gitignore").write_text("*.bin\n")
    (folder / "data" / "big.bin").write_text("secret")
    for name in ("cluster", "incoming"):
        (tmp_path / name).mkdir()
    names = [file.path for file in files.collect(folder).files]
    transfer.push(connection, folder, names, str(tmp_path / "cluster"), [], str(tmp_path / "incoming"), lambda _: None)

    assert sorted(str(path.relative_to(tmp_path / "cluster")) for path in (tmp_path / "cluster").rglob("*")) == [
        ".gitignore",
        "data",
        "data/below",
        "empty",
    ]


def test_a_file_replaces_a_directory_that_an_interrupted_copy_left(
    connection: Connection, tmp_path: pathlib.Path
) -> None:
    for path in ("project/out", "cluster/out/old/a"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    push(connection, tmp_path / "project", tmp_path / "cluster")

    assert contents(tmp_path / "cluster") == {"out": b"project/out"}


def test_names_and_links_of_any_kind_arrive_as_they_are(connection: Connection, tmp_path: pathlib.Path) -> None:
    (tmp_path / "odd").mkdir()
    for name in ODD:
        (tmp_path / "odd" / name).write_text(name, errors="surrogateescape")
    for name, target in {"inside": "a b", "dangling": "nothing", "outside": "/etc/hostname"}.items():
        (tmp_path / "odd" / name).symlink_to(target)
    push(connection, tmp_path / "odd", tmp_path / "cluster")

    links = {path.name: os.readlink(path) for path in (tmp_path / "cluster").iterdir() if path.is_symlink()}
    assert links == {"inside": "a b", "dangling": "nothing", "outside": "/etc/hostname"}
    assert contents(tmp_path / "cluster") == contents(tmp_path / "odd")
