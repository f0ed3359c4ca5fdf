"""Network namespaces over the packages of a release, connected by one switch for the inside and cables of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from tests.native.root import AS_ROOT, root

PACKAGES = ("bind9-host", "dnsmasq-base", "iproute2", "iputils-ping", "isc-dhcp-client", "mount", "nftables", "python3")

FIRST = """
set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o "lowerdir=$0,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
cd /mnt/root
mount -t tmpfs none run
mkdir -p run/netns etc/netns
mount -t proc none proc
mount --rbind /sys sys
mount --rbind /dev dev
exec chroot . python3 -c "$1"
"""

SERVE = """
import json, subprocess, sys
for line in sys.stdin:
    command, text, stays = json.loads(line)
    if stays:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        answer = [0, "", ""]
    else:
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
            answer = [done.returncode, done.stdout, done.stderr]
        except subprocess.TimeoutExpired as error:
            answer = [124, "", str(error)]
    print(json.dumps(answer), flush=True)
"""
"""Runs commands, given as lines of JSON, until its input ends."""


class Network:
    """Namespaces by name; a `with` statement ends everything in them."""

    def __init__(self, release: str, packages: Sequence[str] = PACKAGES) -> None:
        spaces = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child")
        self._process = subprocess.Popen(
            [*AS_ROOT, *spaces, "sh", "-c", FIRST, str(root(release, packages)), SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.run("ip", "link", "add", "switch", "type", "bridge")
        self.run("ip", "link", "set", "switch", "up")

    @property
    def process(self) -> int:
        """The process whose network is that of the switch."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, *command: str, on: str = "", text: str = "", stays: bool = False) -> tuple[int, str, str]:
        """Return exit code, output and error output of a command in a namespace; `stays` does not wait for it."""
        words = ["ip", "netns", "exec", on, *command] if on else list(command)
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([words, text, stays]) + "\n")
        self._process.stdin.flush()
        code, out, err = json.loads(self._process.stdout.readline())
        return int(code), str(out), str(err)

    def run(self, *command: str, **more: Any) -> str:
        """Return the output of a command, which must succeed."""
        code, out, err = self.ask(*command, **more)
        assert code == 0, f"{command} exited with {code}: {out}{err}"
        return out

    def machine(self, name: str) -> None:
        """Make a namespace."""
        self.run("ip", "netns", "add", name)
        self.run("ip", "link", "set", "lo", "up", on=name)

    def plug(self, name: str, interface: str, addresses: Sequence[str] = (), mac: str = "") -> None:
        """Connect a namespace to the switch of the inside."""
        port = f"p-{name}-{interface}"[:15]
        self.run("ip", "link", "add", port, "type", "veth", "peer", "name", interface, "netns", name)
        self.run("ip", "link", "set", port, "master", "switch", "up")
        self._up(name, interface, addresses, mac)

    def cable(self, one: str, interface: str, other: str, far: str) -> None:
        """Connect two namespaces directly."""
        self.run("ip", "link", "add", interface, "netns", one, "type", "veth", "peer", "name", far, "netns", other)
        self._up(one, interface, (), "")
        self._up(other, far, (), "")

    def _up(self, name: str, interface: str, addresses: Sequence[str], mac: str) -> None:
        if mac:
            self.run("ip", "link", "set", interface, "address", mac, on=name)
        self.run("ip", "link", "set", interface, "up", on=name)
        for address in addresses:
            self.run("ip", "address", "add", address, "dev", interface, on=name)
