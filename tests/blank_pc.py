"""A blank PC that QEMU emulates, with real firmware: it tries the network first, then its disk."""

from __future__ import annotations

import pathlib
import shutil

from tests import disk_images

SERIAL = "STEAD0001"
"""Of its disk."""

SIZE = 9 * 10**9

OVMF = pathlib.Path("/usr/share/OVMF")

DISKS = {
    "virtio": f"virtio-blk-pci,drive=disk,serial={SERIAL},bootindex=1",
    "sata": f"ide-hd,drive=disk,serial={SERIAL},bootindex=1",
}


def disk(home: pathlib.Path) -> pathlib.Path:
    """Return the file of its disk in `home`; a new one is blank."""
    path = home / "disk.raw"
    disk_images.write(path, SIZE, {})
    return path


def write_data(path: pathlib.Path) -> str:
    """Put a file system on a disk; return the checksum of the whole disk."""
    disk_images.write(path, SIZE, disk_images.ext4(SIZE))
    return disk_images.checksum(path)


def command(home: pathlib.Path, network: str, mac: str, *, firmware: str = "bios", bus: str = "virtio") -> list[str]:
    """Return the command that switches it on; its disk and what it shows, `console`, are in `home`.

    :param network: QEMU's netdev, without its id
    :param firmware: bios, or uefi with the boot entries of a new board
    """
    # QEMU's option ROM is iPXE. By UEFI the firmware's own network boot is used, as on most boards.
    rom = "" if firmware == "bios" else ",romfile="
    # Without a screen, a BIOS machine was seen to hang in GRUB.
    return [
        *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,tb-size=256", "-cpu", "Nehalem"),
        *("-smp", "1", "-m", "1536M", "-nodefaults", "-no-user-config", "-display", "none", "-vga", "std"),
        *("-serial", f"file:{home}/console", "-device", "virtio-rng-pci", *_flash(home, firmware)),
        *("-netdev", f"{network},id=inside"),
        *("-device", f"virtio-net-pci,netdev=inside,mac={mac},bootindex=0{rom}"),
        *("-drive", f"id=disk,if=none,file={disk(home)},format=raw,cache=unsafe,discard=unmap"),
        *("-device", DISKS[bus], "-smbios", f"type=1,manufacturer=Slurmstead,product=Blank,serial={mac}"),
    ]


def console(home: pathlib.Path) -> str:
    """Return the end of what it showed."""
    return (home / "console").read_text(errors="replace")[-3000:]


def _flash(home: pathlib.Path, firmware: str) -> list[str]:
    if firmware == "bios":
        return []
    shutil.copyfile(OVMF / "OVMF_VARS_4M.fd", home / "nvram")
    return [
        *("-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={OVMF}/OVMF_CODE_4M.fd"),
        *("-drive", f"if=pflash,format=raw,unit=1,file={home}/nvram"),
    ]
