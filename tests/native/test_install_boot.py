"""A machine boots over the network into the installer: the real firmware, iPXE, kernel and program, on a real disk.

The machine is emulated, and its image is built first, so this takes minutes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import time
from collections.abc import Iterator, Mapping

import pytest

from ansible.module_utils.slurmstead.install import plan, reports
from ansible.module_utils.slurmstead.network import dnsmasq
from ansible.module_utils.slurmstead.reach import remote_call
from slurmstead.paths import ROOT
from tests import disk_images
from tests.native.network import PACKAGES, Network
from tests.native.test_install import NODE
from tests.native.test_network import INSIDE, MAC, write

pytestmark = [pytest.mark.slow, pytest.mark.kernel]

INSIDE_HERE = dataclasses.replace(INSIDE, interface="switch")
SERIAL = "STEAD0001"
SIZE = 9 * 10**9
MINUTES = int(os.environ.get("STEAD_INSTALL_MINUTES", "60"))
"""after which an emulated machine counts as hanging"""

SERVE = ROOT / "plugins/module_utils/slurmstead/install/serve.py"
BUILD = ("roles/lab/files/image/sources", "roles/install/files/build-installer")


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The image that control makes, of this computer's release, without the packages of a worker."""
    program = tmp_path_factory.mktemp("build") / "build-installer"
    program.write_text("".join((ROOT / name).read_text() for name in BUILD))
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "slurmstead"
    environment = {**os.environ, "IMAGES": str(cache / "install")}
    done = subprocess.run(["bash", str(program)], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(done.stdout.splitlines()[-1].partition(" ")[2])


class Site:
    """Control on the switch of a Network, while one machine is installed."""

    def __init__(self, net: Network, directory: pathlib.Path, image: pathlib.Path, node: plan.Plan) -> None:
        self.net, self.directory = net, directory
        self.reports = directory / "reports"
        self.disk = directory / "disk.raw"
        (directory / "installer").write_text(remote_call.program("install.machine", "main", {}))
        served = plan.served(node, "70ce", str(image), (image / "checksum").read_text().strip())
        served["files"]["installer"] = str(directory / "installer")
        (directory / "served").write_text(json.dumps(served))
        net.run("mkdir", "-p", "/etc/slurmstead")
        write(net, plan.DNSMASQ, dnsmasq.text(INSIDE_HERE))
        write(net, "/run/open.conf", plan.dnsmasq(node, "70ce"))
        self.reports.write_text("")
        self._server = self.here("python3", "-IS", str(SERVE), str(directory / "served"), str(self.reports))
        net.run("dnsmasq", "--conf-file=/run/open.conf")

    def here(self, *command: str) -> subprocess.Popen[str]:
        """Start a program of this computer in the network of control."""
        words = ["nsenter", f"--net=/proc/{self.net.process}/ns/net", *command]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, text=True)

    @contextlib.contextmanager
    def machine(self) -> Iterator[subprocess.Popen[str]]:
        """Switch the machine on: it tries the network first, then its disk."""
        card = f"virtio-net-pci,netdev=inside,mac={MAC},bootindex=0"
        command = [
            *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,tb-size=256", "-cpu", "Nehalem"),
            *("-smp", "1", "-m", "1536M", "-nodefaults", "-no-user-config", "-display", "none"),
            *("-serial", f"file:{self.directory}/console", "-device", "virtio-rng-pci"),
            *("-netdev", "tap,id=inside,ifname=vm0,script=no,downscript=no", "-device", card),
            *("-drive", f"id=disk,if=none,file={self.disk},format=raw,cache=unsafe,discard=unmap"),
            *("-device", f"virtio-blk-pci,drive=disk,serial={SERIAL},bootindex=1"),
        ]
        process = self.here(*command)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def wait(self, process: subprocess.Popen[str], stage: str) -> Mapping[str, str]:
        """Wait until the machine has reported a stage, or that it refuses."""
        end = time.monotonic() + 60 * MINUTES
        while not (found := reports.reached(self.reports.read_text(), stage)):
            assert process.poll() is None, f"the machine went off: {self.console()}"
            assert time.monotonic() < end, f"the machine did not report {stage}: {self.console()}"
            time.sleep(1)
        return found

    def console(self) -> str:
        """Return the end of what the machine showed."""
        return (self.directory / "console").read_text(errors="replace")[-3000:]

    def close(self) -> None:
        """Stop serving."""
        self._server.kill()
        self._server.wait()


@pytest.fixture
def site(image: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Site]:
    """Control, and a disk without content."""
    node = dataclasses.replace(NODE, disk=SERIAL)
    with Network("bookworm", (*PACKAGES, "ipxe")) as net:
        net.run("ip", "address", "add", "10.77.0.1/24", "dev", "switch")
        net.run("ip", "tuntap", "add", "vm0", "mode", "tap")
        net.run("ip", "link", "set", "vm0", "master", "switch", "up")
        made = Site(net, tmp_path, image, node)
        with made.disk.open("wb") as file:
            file.truncate(SIZE)
        yield made
        made.close()


def test_a_machine_with_data_is_refused_and_byte_identical(site: Site) -> None:
    with site.disk.open("r+b") as file:
        for offset, data in disk_images.ext4(SIZE).items():
            file.seek(offset)
            file.write(data)
    before = disk_images.checksum(site.disk)
    with site.machine() as process:
        done = site.wait(process, "writing")
        process.wait(60 * MINUTES)

    assert done["stage"] == "refused"
    assert "expected a blank disk, found /dev/vda" in done["text"] and "signature ext4" in done["text"]
    assert disk_images.checksum(site.disk) == before
