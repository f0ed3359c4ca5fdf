# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Install Debian on this machine. Runs in the initramfs of a machine that booted over the network, and nowhere else."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from typing import NoReturn

from ansible.module_utils.slurmstead.discover import machine
from ansible.module_utils.slurmstead.install import disk
from ansible.module_utils.slurmstead.install.disk import Refused, Seen
from ansible.module_utils.slurmstead.install.files import files
from ansible.module_utils.slurmstead.install.plan import Plan, plan
from ansible.module_utils.slurmstead.storage import blank, disks

TARGET = pathlib.Path("/target")
CHUNK = 2**20
SECONDS = 60
"""how long a message stays on the screen before the machine goes off"""

NO_DISKS = ("loop", "ram", "zram", "sr", "fd", "dm-", "md", "nbd")


def main() -> None:
    """Install this machine, or say why not and switch it off. Does not return."""
    words = pathlib.Path("/proc/cmdline").read_text().split()
    control = Control(next(word for word in words if word.startswith("stead.url=")).partition("=")[2])
    control.report("started", serial=machine.serial(pathlib.Path("/")))
    try:
        told = json.loads(b"".join(control.read("plan")))
        given = plan(told["options"])
        check_serial(given)
        chosen = disk.choose(seen(given.node), given.disk)
        control.report("writing", disk=chosen.described)
        key = write(given, chosen, control, told["checksum"])
    except Refused as refusal:
        control.report("refused", text=str(refusal))
        _end("o")
    except (OSError, subprocess.SubprocessError, disks.DiskError) as error:
        control.report("failed", text=_said(error))
        _end("o")
    control.report("installed", host_key=key)
    _end("b", 2)


class Control:
    """The machine that serves this installation."""

    def __init__(self, url: str) -> None:
        self.url = url

    def report(self, stage: str, **more: str) -> None:
        """Show a stage on the screen and tell it to control; without control, the screen only."""
        words = " ".join(more.values())
        say(f"{stage}: {words}")
        data = json.dumps({"stage": stage, **more}).encode()
        for _ in range(30):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}report", data, timeout=10):
                return
            time.sleep(2)

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the parts of a file."""
        with urllib.request.urlopen(f"{self.url}{name}", timeout=60) as answer:
            while part := answer.read(CHUNK):
                yield part


def say(text: str) -> None:
    """Show a line on all consoles."""
    with open("/dev/kmsg", "w") as log:
        log.write(f"<3>stead: {text[:900]}\n")


def check_serial(given: Plan) -> None:
    """Raise Refused if this is another machine than the inventory means."""
    own = machine.serial(pathlib.Path("/"))
    if given.serial and given.serial != own:
        raise Refused(
            f"this machine has the serial {own or 'unknown'}, but {given.node} is {given.serial} (os_serial). "
            "Correct router_mac or os_serial"
        )


def seen(node: str) -> list[Seen]:
    """Return the disks of this machine with what is on them. Only reads."""
    names = sorted(path.name for path in pathlib.Path("/sys/block").iterdir() if (path / "device").exists())
    return [look(name, node) for name in names if not name.startswith(NO_DISKS) and "boot" not in name]


def look(name: str, node: str) -> Seen:
    """Return a disk by the kernel's name."""
    device = f"/dev/{name}"
    found = disks.measure(device, device, str(disks.device_number(device)))
    content = blank.findings(found)
    # Nothing may use even what an interrupted installation left.
    others = [one for one in blank.usage(found) if not one.startswith("partitions: ")]
    return Seen(
        device=device,
        serial=found.serial,
        names=[link.rpartition("/")[2] for link in disks.stable_names(device)],
        size=found.size,
        content=content,
        is_unfinished=bool(content) and not others and disk.is_unfinished(_table(device), found.serial, node),
    )


def _table(device: str) -> dict[str, object]:
    done = disks.run(["sfdisk", "--json", device], deadline=60)
    try:
        described: dict[str, object] = json.loads(done.stdout)
    except ValueError:
        return {}
    return described


def write(given: Plan, chosen: Seen, control: Control, checksum: str) -> str:
    """Write the system to the disk; return the fingerprint of its host key."""
    device = chosen.device
    esp, root = disk.partition(device, 2), disk.partition(device, 3)
    root_id, esp_id = str(uuid.uuid4()), os.urandom(4).hex().upper()
    _run("sfdisk", "--wipe=always", "--wipe-partitions=always", device, text=disk.table(chosen.serial, given.node))
    _run("udevadm", "settle")
    _run("mkfs.vfat", "-F", "32", "-n", "EFI", "-i", esp_id, esp)
    _run("mke2fs", "-q", "-F", "-t", "ext4", "-U", root_id, "-L", "root", root)
    say("unpacking the system")
    TARGET.mkdir(exist_ok=True)
    _run("mount", "-t", "ext4", root, str(TARGET))
    unpack(control, checksum)
    (TARGET / "boot/efi").mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "vfat", esp, str(TARGET / "boot/efi"))
    for name in ("dev", "proc", "sys"):
        _run("mount", "-o", "bind", f"/{name}", str(TARGET / name))
    _run("udevadm", "trigger", "--settle", "--subsystem-match=block")
    say("writing the settings of this machine")
    configure(given, root_id, f"{esp_id[:4]}-{esp_id[4:]}")
    say("installing GRUB")
    boot_loaders(device, root_id)
    say("making host keys and saving everything")
    _in("ssh-keygen", "-A")
    key = _in("ssh-keygen", "-l", "-f", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    for name in ("sys", "proc", "dev", "boot/efi", ""):
        _run("umount", str(TARGET / name))
    _run("sfdisk", "--part-label", device, "3", "stead-root")
    os.sync()
    return key


def unpack(control: Control, checksum: str) -> None:
    """Unpack the system; fails if it is not the one that control made."""
    digest = hashlib.sha256()
    unzip = ["zstd", "-dcq"]
    untar = ["tar", "-x", "-C", str(TARGET), "--numeric-owner", "--xattrs", "--xattrs-include=security.capability"]
    with (
        subprocess.Popen(unzip, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as unzipping,
        subprocess.Popen(untar, stdin=unzipping.stdout) as unpacking,
    ):
        assert unzipping.stdin and unzipping.stdout
        unzipping.stdout.close()
        # Also after an error: both are waited for, and end when this is closed.
        with unzipping.stdin:
            for part in control.read("root"):
                digest.update(part)
                unzipping.stdin.write(part)
    if unzipping.returncode or unpacking.returncode or digest.hexdigest() != checksum:
        raise OSError("the system that control sent cannot be unpacked or was changed on its way; run it again")


def configure(given: Plan, root_id: str, esp_id: str) -> None:
    """Write the files of this machine, and create the account."""
    _in("useradd", "--create-home", "--shell", "/bin/bash", "--password", "!", given.user)
    for name, (text, mode) in files(given, root_id, esp_id).items():
        path = TARGET / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(mode)
    (TARGET / "home" / given.user / ".ssh").chmod(0o700)
    _in("chown", "-R", f"{given.user}:", f"/home/{given.user}/.ssh")
    _in("systemctl", "--quiet", "enable", "systemd-networkd.service")


def boot_loaders(device: str, root_id: str) -> None:
    """Make the disk start by BIOS and by UEFI, without a variable of the firmware."""
    _in("grub-install", "--target=i386-pc", device)
    _in("grub-install", "--target=x86_64-efi", "--efi-directory=/boot/efi", "--removable", "--no-nvram")
    _in("update-grub")
    if f"root=UUID={root_id}" not in (TARGET / "boot/grub/grub.cfg").read_text():
        raise OSError(f"GRUB names the root file system by {device}, which can be another disk after a restart")


def _run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=True)
    return done.stdout


def _in(*command: str) -> str:
    """Run a command in the new system."""
    return _run("chroot", str(TARGET), *command)


def _said(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"`{' '.join(error.cmd)}` exited with {error.returncode}: {str(error.stderr).strip()[-400:]}"
    return str(error)


def _end(key: str, seconds: float = SECONDS) -> NoReturn:
    """Switch this machine off (o) or restart it (b): nothing of the initramfs has to be saved."""
    time.sleep(seconds)
    os.sync()
    pathlib.Path("/proc/sysrq-trigger").write_text(key)
    while True:
        time.sleep(SECONDS)
