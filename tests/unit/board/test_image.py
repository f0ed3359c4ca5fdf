"""A copy of an image gets the account, on a real file system; the original stays as it is."""

from __future__ import annotations

import lzma
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

import pytest

from ansible.module_utils.slurmstead.board import image
from ansible.module_utils.slurmstead.board.account import Wanted
from ansible.module_utils.slurmstead.board.partitions import ImageError
from tests import board_images, disk_images

SIZE = 32 * 2**20
KEYS = ["ssh-ed25519 AAAA me", "ssh-ed25519 BBBB you\n"]
WANTED = Wanted("ansible", KEYS, "ansible ALL=(ALL) NOPASSWD: ALL\n", "PasswordAuthentication no\n")

SYSTEM = {
    "etc/os-release": "",
    "usr/lib/os-release": 'NAME="X"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n',
    "etc/passwd": "root:x:0:0::/root:/bin/bash\npi:x:1000:1000::/home/pi:/bin/sh\n",
    "etc/shadow": "root:$y$j9T$known:1::::::\npi::1::::::\n",
    "etc/group": "root:x:0:\nshadow:x:42:\npi:x:1000:\n",
    "etc/gshadow": "root:*::\nshadow:*::\npi:!::\n",
    "etc/sudoers": "@includedir /etc/sudoers.d\n",
    "etc/sudoers.d/README": "",
    "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\n",
    "etc/ssh/sshd_config.d/50-cloud-init.conf": "PasswordAuthentication yes\n",
    "etc/ssh/ssh_host_ed25519_key": "a key that all boards would share",
    "etc/ssh/ssh_host_ed25519_key.pub": "and its public half",
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "var/lib/dbus/machine-id": "0123456789abcdef0123456789abcdef\n",
    "var/lib/systemd/random-seed": "seed",
    "etc/systemd/system/multi-user.target.wants/ssh.service": "",
    "etc/default/armbian-firstrun": "OPENSSHD_REGENERATE_HOST_KEYS=true\n",
    "root/.not_logged_in_yet": "",
    "etc/cloud/cloud.cfg.d/90_dpkg.cfg": "datasource_list: [NoCloud, None]\n",
    "home/pi/notes": "keep",
    **dict.fromkeys(("usr/sbin/sshd", "usr/bin/sudo", "usr/bin/python3"), ""),
}


def tree(directory: pathlib.Path, **changed: str | None) -> pathlib.Path:
    """Write a system; a file that is None is missing."""
    for name, text in {**SYSTEM, **changed}.items():
        if text is not None:
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return directory


def prepare(source: pathlib.Path, target: pathlib.Path, wanted: Wanted = WANTED) -> str:
    """Prepare an image in a directory of its own, as `stead image board` does."""
    with tempfile.TemporaryDirectory(dir=source.parent) as work:
        return image.prepare(source, target, pathlib.Path(work), wanted)


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    return board_images.image(tmp_path / "source.img", tree(tmp_path / "tree"), SIZE)


def test_a_copy_gets_the_account_and_loses_what_boards_would_share(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    before = disk_images.checksum(source)
    target = tmp_path / "new.img"

    assert prepare(source, target) == "Ubuntu 24.04 LTS"

    def read(path: str) -> str:
        return board_images.shown(target, f"cat {path}")

    assert disk_images.checksum(source) == before and target.stat().st_size == SIZE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.img", "source.img", "tree"]
    assert "ansible:x:1001:1001::/home/ansible:/bin/bash\n" in read("/etc/passwd")
    assert read("/etc/shadow") == "root:!$y$j9T$known:1::::::\npi:!:1::::::\nansible:!:::::::\n"
    assert read("/home/ansible/.ssh/authorized_keys") == "ssh-ed25519 AAAA me\nssh-ed25519 BBBB you\n"
    assert "ssh_host_" not in board_images.shown(target, "ls /etc/ssh")
    assert read("/etc/machine-id") == ""
    assert "machine-id" not in board_images.shown(target, "ls /var/lib/dbus")
    assert "random-seed" not in board_images.shown(target, "ls /var/lib/systemd")
    assert read("/etc/default/armbian-firstrun").splitlines()[-1] == "OPENSSHD_REGENERATE_HOST_KEYS=false"
    assert "not_logged_in" not in board_images.shown(target, "ls /root")
    assert "fs_label: null" in read("/etc/cloud/cloud.cfg.d/zz-slurmstead.cfg")
    assert read("/home/pi/notes") == "keep"


@pytest.mark.parametrize(
    ("path", "mode", "owner"),
    [
        ("/etc/shadow", 0o640, "0/42"),
        ("/etc/passwd", 0o644, "0/0"),
        ("/etc/sudoers.d/ansible", 0o440, "0/0"),
        ("/home/ansible", 0o750, "1001/1001"),
        ("/home/ansible/.ssh", 0o700, "1001/1001"),
        ("/home/ansible/.ssh/authorized_keys", 0o600, "1001/1001"),
        ("/etc/ssh/sshd_config.d/10-slurmstead.conf", 0o644, "0/0"),
    ],
)
def test_files_have_the_owner_and_mode_that_programs_demand(
    source: pathlib.Path, tmp_path: pathlib.Path, path: str, mode: int, owner: str
) -> None:
    prepare(source, tmp_path / "new.img")

    directory, _, name = path.rpartition("/")
    line = next(
        one for one in board_images.shown(tmp_path / "new.img", f"ls -p {directory}").split() if f"/{name}/" in one
    )
    found = line.split("/")
    assert (stat.S_IMODE(int(found[2], 8)), "/".join(found[3:5])) == (mode, owner)


def test_the_result_can_be_prepared_again_with_other_keys(source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    prepare(source, tmp_path / "one.img")
    prepare(tmp_path / "one.img", tmp_path / "two.img", Wanted("ansible", KEYS[:1], WANTED.sudoers, WANTED.sshd))

    assert board_images.shown(tmp_path / "two.img", "cat /etc/passwd").count("\nansible:") == 1
    assert board_images.shown(tmp_path / "two.img", "cat /home/ansible/.ssh/authorized_keys") == f"{KEYS[0]}\n"


def test_an_image_with_xz_and_an_mbr_is_unpacked(tmp_path: pathlib.Path) -> None:
    plain = board_images.image(tmp_path / "source.img", tree(tmp_path / "tree"), SIZE, "dos")
    packed = tmp_path / "source.img.xz"
    packed.write_bytes(lzma.compress(plain.read_bytes(), preset=0))

    prepare(packed, tmp_path / "new.img")

    assert "ansible" in board_images.shown(tmp_path / "new.img", "cat /etc/passwd", 2048 * 512)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"usr/bin/sudo": None}, "its system has no sudo"),
        ({"usr/sbin/sshd": None}, "its system has no ssh server"),
        ({"etc/passwd": None}, "it has no partitions with a Linux system on ext4"),
        ({"etc/ssh/sshd_config": "Port 22\n"}, "does not include sshd_config.d"),
        ({"etc/systemd/system/multi-user.target.wants/ssh.service": None}, "does not start at boot"),
    ],
)
def test_a_system_that_ansible_cannot_use_is_refused(
    tmp_path: pathlib.Path, changed: dict[str, None], why: str
) -> None:
    source = board_images.image(tmp_path / "source.img", tree(tmp_path / "tree", **changed), SIZE)
    with pytest.raises(ImageError, match=why):
        prepare(source, tmp_path / "new.img")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.img", "tree"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "has no partition table"),
        (b"text\n" * 999, "has no partition table"),
        (b"\x1f\x8b" + bytes(999), "is packed; unpack it"),
        (lzma.compress(b"text\n" * 999), "has no partition table"),
        (lzma.compress(bytes(10**6))[:60], "cannot be used"),
        (bytes(510) + b"\x55\xaa" + bytes(512), "its partition table is empty"),
    ],
)
def test_a_file_that_is_not_an_image_is_refused(tmp_path: pathlib.Path, content: bytes, why: str) -> None:
    source = tmp_path / "source"
    source.write_bytes(content)
    with pytest.raises(ImageError, match=why):
        prepare(source, tmp_path / "new.img")

    assert list(tmp_path.iterdir()) == [source]


def test_a_truncated_image_a_full_disk_and_an_old_target_are_refused_first(
    source: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImageError, match="exists already"):
        prepare(source, source)
    with pytest.raises(ImageError, match="there is no directory"):
        prepare(source, tmp_path / "none" / "new.img")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**7))
        with pytest.raises(ImageError, match="has 0.0 GB free"):
            prepare(source, tmp_path / "new.img")
    os.truncate(source, SIZE // 2)
    with pytest.raises(ImageError, match="download it again"):
        prepare(source, tmp_path / "new.img")


def test_a_full_file_system_leaves_no_target(source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    free = board_images.shown(source, "stats").partition("Free blocks:")[2].split()[0]
    filler = tmp_path / "filler"
    filler.write_bytes(b"x" * 4096 * (int(free) - 2))
    words = ["debugfs", "-w", "-R", f"write {filler} /filler", f"{source}?offset={board_images.START}"]
    subprocess.run(words, env={**os.environ, "PATH": board_images.PATH}, check=True, capture_output=True)
    with pytest.raises(ImageError, match="cannot be written to its file system"):
        prepare(source, tmp_path / "new.img")

    assert not (tmp_path / "new.img").exists()
