"""The packages and kernel settings that Ansible and the lab need on this computer."""

import contextlib
import os
import pathlib
import platform
import shutil
import subprocess
from collections.abc import Iterable

from rich.console import Console

from slurmstead.errors import MachineError

PACKAGES_ANSIBLE = {"openssh-client": "connects to the machines", "rsync": "copies submitted folders"}
"""Packages, each with its purpose; their names are the same in Debian 12 and 13 and in Ubuntu 22.04 and 24.04."""

PACKAGES_IMAGE = {
    **PACKAGES_ANSIBLE,
    "arch-test": "tells mmdebstrap which architectures run here",
    "e2fsprogs": "creates the image's file system",
    "iproute2": "the network of native clusters",
    "mmdebstrap": "builds the image",
}
"""The same for an image."""

PACKAGES = {
    **PACKAGES_IMAGE,
    "qemu-system-x86": "runs the machines",
    "qemu-utils": "creates their disks",
    "uidmap": "lets an ordinary user build the image",
    "vde2": "provides the switch between the machines",
}
"""The same for a lab of virtual machines."""

PACKAGES_NATIVE = {
    **PACKAGES_IMAGE,
    "iproute2": "creates the network between the containers",
    "slirp4netns": "connects the containers to the mirror",
    "systemd-container": "runs the containers",
}
"""The packages for a lab of containers."""

PACKAGES_ARM64 = {
    "device-tree-compiler": "describes a board's CPUs",
    "qemu-system-arm": "runs the arm64 machines",
    "qemu-user-static": "runs package scripts while the arm64 image is built",
}
"""The packages for arm64 machines on this computer."""

PACKAGES_TESTS = {
    "ipmitool": "asks a simulated BMC",
    "openipmi": "simulates a BMC",
    "openssl": "makes and checks certificates",
}
"""What the tests need besides the packages for a lab of virtual machines."""

BINFMT = pathlib.Path("/proc/sys/fs/binfmt_misc")
BINFMT_ARM64 = pathlib.Path("/usr/lib/binfmt.d/qemu-aarch64.conf")


def missing(packages: list[str], listing: str) -> list[str]:
    """Return the packages that are not installed according to `NAME STATUS` lines of `dpkg-query`."""
    installed = {
        name for name, _, status in (line.partition(" ") for line in listing.splitlines()) if status == "installed"
    }
    return [package for package in packages if package not in installed]


def missing_packages(wanted: Iterable[str]) -> list[str]:
    """Return the packages that are not installed here.

    :raises MachineError: this is not Debian or Ubuntu
    """
    if shutil.which("dpkg-query") is None or shutil.which("apt-get") is None:
        raise MachineError(
            f"expected Debian or Ubuntu with apt-get and dpkg-query, seen {platform.platform()}",
            f"Install the equivalents of {', '.join(wanted)} by hand, or run this on a Debian machine.",
        )
    names = sorted(wanted)
    command = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\\n", *names]
    # The exit code is not checked: it is not 0 for unknown names, but the output lists the others.
    return missing(names, subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def apt(arguments: list[str], *, root: bool) -> list[str]:
    """Return a non-interactive apt-get command line, with sudo unless `root`."""
    # On a new system, unattended-upgrades has the lock for minutes.
    options = ("-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=600")
    return [*([] if root else ["sudo"]), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *options, *arguments]


def ensure_packages(
    console: Console, *, lab: bool = True, arm64: bool = False, native: bool = False, tests: bool = False
) -> list[str]:
    """Install the missing packages for Ansible, a `lab` (of containers if `native`), `arm64` in it, and the `tests`.

    Returns them.

    Asks sudo, saying what for, unless root.

    :raises MachineError: this is not Debian or Ubuntu, apt-get could not install them, or arm64 programs do not run
    """
    kind = PACKAGES_NATIVE if native else PACKAGES if lab else PACKAGES_ANSIBLE
    purposes = {**kind, **(PACKAGES_ARM64 if arm64 else {}), **(PACKAGES_TESTS if tests else {})}
    wanted = missing_packages(purposes)
    if wanted:
        width = max(len(package) for package in wanted)
        for package in wanted:
            console.print(f"    {package:<{width}} {purposes[package]}")
        _install(console, wanted)
    if arm64:
        _ensure_arm64_programs()
    return wanted


def _ensure_arm64_programs() -> None:
    def runs() -> bool:
        return subprocess.run(["arch-test", "arm64"], capture_output=True, check=False).returncode == 0

    if not runs() and os.geteuid() == 0:
        # systemd does this at boot; a container or a machine without systemd needs it here.
        if not (BINFMT / "register").exists():
            subprocess.run(["mount", "-t", "binfmt_misc", "none", str(BINFMT)], capture_output=True, check=False)
        with contextlib.suppress(OSError):
            (BINFMT / "register").write_text(BINFMT_ARM64.read_text())
    if not runs():
        raise MachineError(
            "arm64 programs do not run on this computer, so no arm64 image can be built",
            f"As root: systemctl restart systemd-binfmt, or write {BINFMT_ARM64} to {BINFMT / 'register'}.",
        )


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command and capture its output, as subprocess.run does; an interruption also arrives if it runs as root."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            # sudo is a process of root; the terminal interrupts it too.
            with contextlib.suppress(PermissionError):
                process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _install(console: Console, packages: list[str]) -> None:
    root = os.geteuid() == 0
    by_hand = f"As root: apt-get install {' '.join(packages)}"
    if not root:
        if shutil.which("sudo") is None:
            raise MachineError(
                f"packages are missing and there is no sudo to install them: {', '.join(packages)}", by_hand
            )
        console.print("    sudo is used only to install these packages; it may ask for your password")
    install = apt(["install", "--yes", "--no-install-recommends", *packages], root=root)
    done = _run(install)
    if done.returncode:
        # The package lists can be missing (a container) or too old.
        subprocess.run(apt(["update"], root=root), capture_output=True, check=False)
        done = _run(install)
    if done.returncode:
        raise MachineError(f"apt-get could not install {', '.join(packages)}:\n{done.stderr.strip()}", by_hand)
