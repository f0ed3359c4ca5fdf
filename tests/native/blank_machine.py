"""A blank machine on the switch of a router: emulated, with the firmware of a PC, installed by what control serves."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import time
from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.install import plan, reports
from ansible.module_utils.slurmstead.network import dnsmasq
from ansible.module_utils.slurmstead.reach import remote_call
from slurmstead.paths import ROOT
from tests import blank_pc
from tests.native.network import Network
from tests.native.test_network import INSIDE, MAC, write

MINUTES = int(os.environ.get("STEAD_INSTALL_MINUTES", "60"))
"""after which an emulated machine counts as hanging"""

SERVE = ROOT / "plugins/module_utils/slurmstead/install/serve.py"


class Site:
    """Control on the switch of a Network, while one machine with a disk is installed.

    :param node: what is to be installed; its key is that of this site
    """

    def __init__(self, net: Network, directory: pathlib.Path, image: pathlib.Path, node: plan.Plan) -> None:
        self.net, self.directory, self.image = net, directory, image
        self.reports, self.disk, self.key = directory / "reports", blank_pc.disk(directory), directory / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True)
        self.node = dataclasses.replace(node, keys=(self.key.with_suffix(".pub").read_text().strip(),))
        (directory / "installer").write_text(remote_call.program("install.machine", "main", {}))
        net.run("ip", "address", "add", f"{node.router}/24", "dev", "switch")
        net.run("ip", "tuntap", "add", "vm0", "mode", "tap")
        net.run("ip", "link", "set", "vm0", "master", "switch", "up")
        net.run("mkdir", "-p", "/etc/slurmstead")
        write(net, plan.DNSMASQ, dnsmasq.text(dataclasses.replace(INSIDE, interface="switch")))

    @contextlib.contextmanager
    def window(self, token: str = "70ce") -> Iterator[None]:
        """Serve one installation, as the module install_window and its unit do."""
        served = plan.served(self.node, token, str(self.image), (self.image / "checksum").read_text().strip())
        served["files"]["installer"] = str(self.directory / "installer")
        (self.directory / "served").write_text(json.dumps(served))
        write(self.net, "/run/open.conf", plan.dnsmasq(self.node, token))
        self.reports.write_text("")
        server = self.here("python3", "-IS", str(SERVE), str(self.directory / "served"), str(self.reports))
        self._dnsmasq("/run/open.conf")
        try:
            yield
        finally:
            server.kill()
            server.wait()
            self._dnsmasq(plan.DNSMASQ)

    def _dnsmasq(self, configuration: str) -> None:
        # The old one may still have the port.
        self.net.ask("sh", "-c", "kill -9 $(cat /run/dnsmasq.pid)")
        start = f"until dnsmasq --conf-file={configuration} --pid-file=/run/dnsmasq.pid; do sleep 0.2; done"
        self.net.run("sh", "-c", start)

    def here(self, *command: str) -> subprocess.Popen[str]:
        """Start a program of this computer in the network of control."""
        words = ["nsenter", f"--net=/proc/{self.net.process}/ns/net", *command]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, text=True)

    @contextlib.contextmanager
    def machine(self, kind: str) -> Iterator[subprocess.Popen[str]]:
        """Switch the machine on: it tries the network first, then its disk."""
        network = "tap,ifname=vm0,script=no,downscript=no"
        process = self.here(*blank_pc.command(self.directory, network, MAC, firmware=kind))
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

    def answer(self, process: subprocess.Popen[str]) -> str:
        """Wait until the machine has ssh; return the fingerprint of its host key."""
        known, end = self.directory / "known", time.monotonic() + 60 * MINUTES
        scan = f"ssh-keyscan -T 60 -t ed25519 {self.node.address} > {known} 2> /dev/null; test -s {known}"
        while self.here("sh", "-c", scan).wait():
            assert process.poll() is None, f"the machine went off: {self.console()}"
            assert time.monotonic() < end, f"the machine has no ssh: {self.console()}"
            time.sleep(2)
        return subprocess.check_output(["ssh-keygen", "-lf", known], text=True).split()[1]

    def ssh(self, command: str) -> str:
        """Return what a command prints as the account of the new machine, by its key, to the host key seen before."""
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={self.directory}/known")
        words = [word for option in options for word in ("-o", option)]
        done = subprocess.run(
            [
                *("nsenter", f"--net=/proc/{self.net.process}/ns/net", "ssh", "-F", "none", "-i", str(self.key)),
                *(*words, f"{self.node.user}@{self.node.address}", command),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * MINUTES,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def console(self) -> str:
        """Return the end of what the machine showed."""
        return blank_pc.console(self.directory)
