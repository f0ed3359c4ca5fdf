"""Copies of a directory, with the real rsync."""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import time

import pytest

from ansible.module_utils.slurmstead.storage import share, transfer
from ansible.module_utils.slurmstead.storage.disks import DiskError
from ansible.module_utils.slurmstead.storage.users import users

SPARSE = 64 * 2**20

pytestmark = pytest.mark.slow


@pytest.fixture
def original(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with everything that a copy must keep."""
    place = tmp_path / "original"
    (place / "home/alice").mkdir(parents=True)
    (place / "home/alice/thesis.tex").write_text("text")
    (place / "home/alice/thesis.tex").chmod(0o640)
    os.utime(place / "home/alice/thesis.tex", ns=(10**18, 10**18 + 1))
    os.link(place / "home/alice/thesis.tex", place / "home/alice/same.tex")
    os.symlink("thesis.tex", place / "home/alice/link")
    with (place / "home/alice/sparse").open("wb") as file:
        file.truncate(SPARSE)
    (place / "home/alice/run").write_text("#!/bin/sh\n")
    (place / "home/alice/run").chmod(0o4755)
    (place / "home").chmod(0o751)
    os.mkfifo(place / "home/alice/pipe")
    for made in ("home/alice/pipe", "home/alice"):  # rsync leaves the time of what it makes in the same second
        os.utime(place / made, (1e9, 1e9))
    place.chmod(0o711)
    return place


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with the mark of a copy."""
    place = tmp_path / "copy"
    (place / share.MARK / "files").mkdir(parents=True)
    (place / share.MARK / "original").write_text("node3:/original")
    return place


def hidden(copy: pathlib.Path) -> pathlib.Path:
    """Return the directory of the files of an incomplete copy."""
    return copy / share.MARK / "files"


def transferred(original: pathlib.Path, copy: pathlib.Path, *, final: bool = True) -> int:
    return transfer.copy(transfer.Original(str(original)), str(copy), final=final, deadline=60)


def test_a_copy_has_all_properties_of_the_original(original: pathlib.Path, copy: pathlib.Path) -> None:
    assert transferred(original, copy) > 0

    home, there = original / "home/alice", copy / "home/alice"
    for name in ("thesis.tex", "run", "sparse", "pipe", "."):
        before, after = (home / name).stat(), (there / name).stat()
        assert (before.st_mode, before.st_uid, before.st_gid) == (after.st_mode, after.st_uid, after.st_gid)
        assert before.st_mtime_ns == after.st_mtime_ns
    assert (there / "same.tex").stat().st_ino == (there / "thesis.tex").stat().st_ino
    assert os.readlink(there / "link") == "thesis.tex"
    assert (there / "sparse").stat().st_size == SPARSE
    assert (there / "sparse").stat().st_blocks * 512 < SPARSE
    assert copy.stat().st_mode == original.stat().st_mode
    assert share.original(str(copy))


def test_extended_attributes_and_access_lists_are_copied(original: pathlib.Path, copy: pathlib.Path) -> None:
    file = original / "home/alice/thesis.tex"
    os.setxattr(file, "user.note", b"keep")
    # user::rw- user:7:r-- group::r-- mask::r-- other::--- (acl(5), include/uapi/linux/posix_acl_xattr.h)
    entries = ((1, 6, -1), (2, 4, 7), (4, 4, -1), (16, 4, -1), (32, 0, -1))
    packed = b"".join(
        tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + (who & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, bits, who in entries
    )
    os.setxattr(file, "system.posix_acl_access", b"\x02\0\0\0" + packed)

    transferred(original, copy)
    there = copy / "home/alice/thesis.tex"
    assert os.getxattr(there, "user.note") == b"keep"
    assert os.getxattr(there, "system.posix_acl_access") == os.getxattr(file, "system.posix_acl_access")


def test_the_original_is_not_changed(original: pathlib.Path, copy: pathlib.Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        return [(str(path), path.lstat().st_ctime_ns, path.lstat().st_size) for path in sorted(original.rglob("*"))]

    before = state()
    transferred(original, copy)
    assert state() == before


def test_what_was_removed_since_the_first_copy_does_not_come_back(original: pathlib.Path, copy: pathlib.Path) -> None:
    transferred(original, copy, final=False)
    (original / "home/alice/run").unlink()

    assert (hidden(copy) / "home/alice/run").exists()
    transferred(original, copy)
    assert not (copy / "home/alice/run").exists()


def test_no_file_is_shown_before_all_were_compared(
    original: pathlib.Path, copy: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differ(*_: object) -> None:
        raise DiskError("they differ")

    monkeypatch.setattr(transfer, "compare", differ)
    with pytest.raises(DiskError, match="they differ"):
        transferred(original, copy)

    assert [path.name for path in copy.iterdir()] == [share.MARK]


def test_a_copy_that_a_process_uses_is_not_continued(original: pathlib.Path, copy: pathlib.Path) -> None:
    transferred(original, copy)
    with subprocess.Popen(["sleep", "60"], cwd=copy / "home/alice") as user:
        with pytest.raises(DiskError, match=rf"sleep \(process {user.pid} of root\) uses .*: end it"):
            transferred(original, copy)
        user.kill()

    assert transferred(original, copy) == 0


def test_what_is_there_already_is_not_replaced(original: pathlib.Path, copy: pathlib.Path) -> None:
    transferred(original, copy, final=False)
    (copy / "home").mkdir()

    with pytest.raises(DiskError, match="contain home: move one of them away"):
        transfer.show(str(copy))


def test_a_directory_without_the_mark_is_not_written_to(original: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/data").write_text("mine")

    with pytest.raises(DiskError, match="nothing was written to it"):
        transferred(original, tmp_path / "other")
    assert (tmp_path / "other/data").read_text() == "mine"


def test_a_file_that_differs_only_in_content_is_found(original: pathlib.Path, copy: pathlib.Path) -> None:
    transferred(original, copy)
    there, state = copy / "home/alice/thesis.tex", (copy / "home/alice/thesis.tex").stat()
    there.write_text("tex?")
    os.utime(there, ns=(state.st_atime_ns, state.st_mtime_ns))

    with pytest.raises(DiskError, match="files of the copy differ from the original, such as .*tex"):
        transfer.compare(transfer.Original(str(original)), transfer.hide(str(copy)), 60)


def test_a_repeated_copy_transfers_nothing(original: pathlib.Path, copy: pathlib.Path) -> None:
    transferred(original, copy)

    assert transferred(original, copy) == 0


def test_a_copy_that_was_killed_is_completed(original: pathlib.Path, copy: pathlib.Path) -> None:
    (original / "large").write_bytes(os.urandom(32 * 2**20))
    command = transfer.rsync_command(transfer.Original(str(original)), str(hidden(copy)), "--bwlimit=8m")
    with subprocess.Popen(command) as running:
        while not list(hidden(copy).glob(".large.*")):
            assert running.poll() is None, "it ended before it was killed"
        running.kill()
    while users([str(copy)], of_jobs=True):  # its other processes
        time.sleep(0.01)

    transferred(original, copy)
    digests = {hashlib.sha256((place / "large").read_bytes()).hexdigest() for place in (original, copy)}
    assert len(digests) == 1
    assert not list(copy.glob(".large.*"))


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("rsync --server --sender -logDtpHAXSxre.iLsfxCIvu --numeric-ids . {place}/", 0),
        ("rsync --server --sender -logDtpre . /etc/", 1),
        ("rsync --server -logDtpre . {place}/", 1),
        ("rsync --server --sender -e . {place}/; touch {place}/broken; rsync --server --sender . {place}/", 1),
        ("cat /etc/shadow", 1),
        ("", 1),
    ],
)
def test_the_key_of_a_copy_reads_one_directory_only(
    original: pathlib.Path, tmp_path: pathlib.Path, asked: str, code: int
) -> None:
    (tmp_path / "send").write_text(transfer.SEND.format(source=original))
    (tmp_path / "rsync").write_text("#!/bin/sh\necho served\n")
    (tmp_path / "rsync").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", tmp_path / "send"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": asked.format(place=original)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == code
    assert (done.stdout == "served\n") is (code == 0)
    assert not (original / "broken").exists()
