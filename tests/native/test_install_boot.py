"""A machine boots over the network into the installer: the real firmware, iPXE, kernel and program, on a real disk.

The machine is emulated, and its image is built first, so this takes minutes.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import time
from collections.abc import Iterator

import pytest

from slurmstead.paths import ROOT
from tests import blank_pc, disk_images
from tests.blank_pc import SERIAL
from tests.native.blank_machine import MINUTES, Site
from tests.native.network import PACKAGES, Network
from tests.native.test_install import NODE

pytestmark = [pytest.mark.slow, pytest.mark.kernel]

BUILD = ("roles/lab/files/image/sources", "roles/install/files/build-installer")

STATE = (
    "cat /proc/sys/kernel/hostname; findmnt -no SOURCE /; sudo -n id -u; ip -4 -o address show scope global; "
    "systemctl --failed"
)


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The image that control makes, of this computer's release, without the packages of a worker."""
    program = tmp_path_factory.mktemp("build") / "build-installer"
    program.write_text("".join((ROOT / name).read_text() for name in BUILD))
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "slurmstead"
    environment = {**os.environ, "IMAGES": str(cache / "install")}
    done = subprocess.run(["bash", str(program)], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(done.stdout.splitlines()[-1].partition(" ")[2])


@pytest.fixture
def site(image: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Site]:
    """Control, and a machine whose disk has no content."""
    with Network("bookworm", (*PACKAGES, "ipxe")) as net:
        yield Site(net, tmp_path, image, dataclasses.replace(NODE, disk=SERIAL))


def test_a_machine_with_data_is_refused_and_byte_identical(site: Site) -> None:
    before = blank_pc.write_data(site.disk)
    with site.window(), site.machine("bios") as process:
        done = site.wait(process, "writing")
        process.wait(60 * MINUTES)

    assert done["stage"] == "refused"
    assert "expected a blank disk, found /dev/vda" in done["text"] and "signature ext4" in done["text"]
    assert disk_images.checksum(site.disk) == before


@pytest.mark.parametrize(("firmware", "state"), [("bios", "an interrupted installation"), ("uefi", "blank")])
def test_a_blank_machine_is_installed_and_starts_from_its_disk(site: Site, firmware: str, state: str) -> None:
    if state != "blank":
        interrupt(site, firmware)
    with site.window("beef"), site.machine(firmware) as process:
        done = site.wait(process, "installed")
        assert done["stage"] == "installed", done
        assert state in done["disk"]

        assert site.answer(process) == done["host_key"]
        said = site.ssh(STATE)

    assert said.splitlines()[:3] == ["node1", "/dev/vda3", "0"], said
    assert "10.77.0.11/24" in said and "0 loaded units listed" in said
    # As at each later boot, the network is tried first and has no boot file. The firmware has forgotten its entries.
    with site.machine(firmware) as process:
        assert site.answer(process) == done["host_key"]
        assert site.ssh("test -d /sys/firmware/efi && echo uefi || echo bios").strip() == firmware


def interrupt(site: Site, firmware: str) -> None:
    """Cut the power while the system is unpacked."""
    with site.window(), site.machine(firmware) as process:
        assert "blank" in site.wait(process, "writing")["disk"]
        while site.disk.stat().st_blocks * 512 < 300 * 2**20:
            assert process.poll() is None, site.console()
            time.sleep(1)
