"""A real system of Debian becomes an image, is prepared, written by a simulated bmcd, and starts in a machine.

The firmware of a PC stands for U-Boot only as far as the kernel: it is given to QEMU directly.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from tests import board_images, disk_images
from tests import power_devices as devices
from tests.lab.run import STEAD, as_person
from tests.native.root import AS_ROOT, root

PACKAGES = (
    *("cloud-init", "dbus", "e2fsprogs", "initramfs-tools", "linux-image-cloud-amd64", "netplan.io", "openssh-server"),
    *("python3", "sudo", "systemd-sysv", "udev"),
)
SIZE = 3 * 2**30
UNREACHABLE = 255
"""Exit code of ssh(1) if it could not log in."""

MINUTES = os.environ.get("STEAD_INSTALL_MINUTES", "60")

INVENTORY = """\
all:
  vars:
    bootstrap_authorized_keys: ["{{{{ lookup('ansible.builtin.file', '{directory}/key.pub') }}}}"]
    ansible_user: ansible
    ansible_ssh_private_key_file: {directory}/key
    ansible_ssh_common_args: -F none -o UserKnownHostsFile={directory}/known
  hosts:
    head: {{os_address: 10.77.0.1, ansible_host: 127.0.0.1, ansible_port: 9}}
    node2:
      os_address: 10.77.0.2
      ansible_host: 127.0.0.1
      ansible_port: {port}
      power_method: turing_pi
      power_slot: 2
      power_address: {board.address}
      power_certificate: {board.certificate}
      power_user: admin
      power_password: "{{{{ 'ri' ~ 'ght' }}}}"
control: {{hosts: {{head: }}}}
nfs_server: {{hosts: {{head: }}}}
workers: {{hosts: {{node2: }}}}
"""

KNOWN_PASSWORD = """\
#cloud-config
users: [default, {name: ubuntu, lock_passwd: false, plain_text_passwd: ubuntu, sudo: "ALL=(ALL) NOPASSWD:ALL"}]
ssh_pwauth: true
"""

STATE = (
    "cloud-init status --wait > /dev/null; sudo -n id -u; sudo -n visudo --check --strict; id ubuntu; "
    "sudo -n sshd -T | grep -E '^(passwordauthentication|kbdinter)'; sudo -n awk -F: '$2 !~ /^[!*]/' /etc/shadow; "
    "cat /etc/machine-id"
)


@pytest.fixture(scope="module")
def tree() -> pathlib.Path:
    """The files of the system, with host keys that all copies would share."""
    return root("bookworm", PACKAGES)


@pytest.fixture(scope="module")
def source(tree: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The image that a user downloads."""
    return board_images.image(tmp_path_factory.mktemp("source") / "debian.img", tree, SIZE, as_root=AS_ROOT)


@dataclasses.dataclass
class Module(devices.Device):
    """The module in slot 2: its system starts when bmcd switches it on."""

    directory: pathlib.Path = pathlib.Path()
    tree: pathlib.Path = pathlib.Path()
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def switch(self, on: bool, word: str) -> None:
        super().switch(on, word)
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL) if on else None

    def command(self) -> list[str]:
        boot = self.tree / "boot"
        return [
            *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,tb-size=256", "-cpu", "Nehalem", "-m", "1024M"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-serial", f"file:{self.directory}/console"),
            *("-kernel", str(next(boot.glob("vmlinuz-*"))), "-initrd", str(next(boot.glob("initrd.img-*")))),
            *("-append", "root=/dev/vda1 rw console=ttyS0", "-device", "virtio-rng-pci"),
            *("-drive", f"file={self.disk},format=raw,if=virtio,cache=unsafe"),
            # What the maker's image has in its partition CIDATA.
            *(
                "-drive",
                f"file.driver=vvfat,file.dir={self.directory}/cidata,file.label=CIDATA,format=raw,if=virtio,read-only=on",
            ),
            *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22", "-device", "virtio-net-pci,netdev=net"),
        ]


@pytest.fixture
def site(tree: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Module]:
    """A board without a cluster yet, and its inventory."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    (tmp_path / "cidata").mkdir()
    (tmp_path / "cidata/user-data").write_text(KNOWN_PASSWORD)
    (tmp_path / "cidata/meta-data").write_text("instance-id: cloud-image\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    disk = tmp_path / "emmc"
    disk_images.write(disk, SIZE + 2**20, {})
    board = Module(directory=tmp_path, tree=tree, port=port, disk=disk)
    with devices.served(devices.BmcdHandler, devices.certificate(tmp_path), board):
        (tmp_path / "hosts.yml").write_text(INVENTORY.format(directory=tmp_path, board=board, port=port))
        try:
            yield board
        finally:
            board.switch(False, "end")


def stead(site: Module, *words: str, status: int = 0) -> str:
    """Run a verb; return what it prints."""
    done = as_person([STEAD, *words, "-i", site.directory / "hosts.yml"], 120 * int(MINUTES))
    assert done.returncode == status, f"{done.stdout}{console(site)}"
    return done.stdout


def console(site: Module) -> str:
    """Return the end of what the module showed."""
    path = site.directory / "console"
    return path.read_text(errors="replace")[-3000:] if path.exists() else ""


def test_a_prepared_system_of_debian_is_whole_and_has_the_account(source: pathlib.Path, site: Module) -> None:
    before = disk_images.checksum(source)
    target = site.directory / "new.img"
    assert "has Debian GNU/Linux 12 (bookworm) with the account" in stead(
        site, "image", "board", str(source), "-o", str(target)
    )

    assert disk_images.checksum(source) == before
    words = ["e2fsck", "-fn", f"{target}?offset={board_images.START}"]
    subprocess.run(words, env={**os.environ, "PATH": board_images.PATH}, check=True)
    assert "ssh_host_" in board_images.shown(source, "ls /etc/ssh")
    assert "ssh_host_" not in board_images.shown(target, "ls /etc/ssh")
    key = (site.directory / "key.pub").read_text()
    assert board_images.shown(target, "cat /home/ansible/.ssh/authorized_keys") == key


def test_without_keys_no_image_is_made(site: Module) -> None:
    inventory = site.directory / "hosts.yml"
    inventory.write_text(inventory.read_text().replace("bootstrap_authorized_keys:", "x_keys:"))
    image = whole(site)

    said = stead(site, "image", "board", str(image), "-o", f"{image}.new", status=4)
    assert "bootstrap_authorized_keys of control is empty" in said
    assert not pathlib.Path(f"{image}.new").exists()


def test_a_node_of_the_cluster_and_a_machine_that_answers_are_not_overwritten(site: Module) -> None:
    words = ("flash", "node2", str(whole(site)), "--direct", "--yes", "node2")
    record = site.directory / "hardware/node2.yml"
    record.parent.mkdir()
    record.write_text("{}")
    assert "First run scripts/stead remove-node node2" in stead(site, *words, status=4)

    record.unlink()
    with socket.create_server(("127.0.0.1", site.port)) as server:
        threading.Thread(target=refuse, args=(server,), daemon=True).start()
        assert "node2 answers, so its system may be in use; nothing was written" in stead(site, *words, status=4)
    assert not site.announced and not site.switched


def refuse(server: socket.socket) -> None:
    """Answer as an ssh server that accepts nobody."""
    with contextlib.suppress(OSError):
        while True:
            peer, _ = server.accept()
            peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            peer.close()


def whole(site: Module) -> pathlib.Path:
    """Return a small image of a disk."""
    path = site.directory / "small.img"
    disk_images.write(path, 4 * disk_images.MIB, disk_images.dos(4 * disk_images.MIB))
    return path


def ssh(*command: str) -> subprocess.CompletedProcess[str]:
    """Log in, and keep what is said apart from errors."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.kernel
def test_a_flashed_module_starts_with_the_account_and_its_own_host_key(source: pathlib.Path, site: Module) -> None:
    target = site.directory / "new.img"
    stead(site, "image", "board", str(source), "-o", str(target))
    said = stead(site, "flash", "node2", str(target), "--direct", "--yes", "node2", "--deadline", MINUTES)

    with target.open("rb") as one, (site.disk or target).open("rb") as other:
        other.seek(SIZE // 2)
        one.seek(SIZE // 2)
        assert one.read(2**20) == other.read(2**20)
    assert site.switched == ["1"] and "right" not in said
    known = subprocess.check_output(
        ["ssh-keyscan", "-T", "120", "-p", str(site.port), "-t", "ed25519", "127.0.0.1"], text=True
    )
    (site.directory / "known").write_text(known)
    fingerprint = subprocess.check_output(["ssh-keygen", "-lf", site.directory / "known"], text=True).split()[1]
    assert f"os_host_key: {fingerprint}" in said and "scripts/stead add-node node2" in said
    assert fingerprint in (site.directory / "console").read_text(errors="replace")
    assert known.split()[2] not in board_images.shown(source, "cat /etc/ssh/ssh_host_ed25519_key.pub")

    options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={site.directory}/known")
    words = [word for option in options for word in ("-o", option)]
    login = ["ssh", "-F", "none", "-i", str(site.directory / "key"), "-p", str(site.port), *words, "ansible@127.0.0.1"]
    end = time.monotonic() + 60 * int(MINUTES)
    # sshd answers before systemd lets anyone log in (pam_nologin(8)).
    while (done := ssh(*login, STATE)).returncode == UNREACHABLE and time.monotonic() < end:
        time.sleep(2)
    lines = done.stdout.splitlines()
    assert lines[:1] == ["0"], f"{done.stdout}{done.stderr}{console(site)}"
    assert {"passwordauthentication no", "kbdinteractiveauthentication no"} <= set(lines), done.stdout
    assert "'ubuntu': no such user" in done.stderr, done.stderr
    assert not [line for line in lines if ":" in line and not line.startswith("/etc/sudoers")], done.stdout
    assert len(lines[-1]) == 32
