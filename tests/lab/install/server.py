"""A blank server on the switch of a lab, and the BMC that switches it."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

from tests import blank_pc
from tests.power_devices import Device

MAC = "52:54:00:00:77:01"


class Server(Device):
    """A BMC and the machine that it switches; `home` has the machine's disk."""

    def __init__(self, lab: Any, home: pathlib.Path) -> None:
        self.network = f"vde,sock={lab.directory}/switch"
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None
        super().__init__(disk=blank_pc.disk(home))

    @property
    def on(self) -> bool:
        """Whether the machine runs."""
        return self.process is not None and self.process.poll() is None

    @on.setter
    def on(self, value: bool) -> None:
        if value and not self.on:
            command = blank_pc.command(self.home, self.network, MAC, bus="sata")
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        elif self.process and not value:
            self.process.kill()
            self.process.wait()

    def erase(self) -> None:
        """Empty the disk, as its owner would with another system."""
        self.disk.unlink()
        blank_pc.disk(self.home)
