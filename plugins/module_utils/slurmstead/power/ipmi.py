# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""IPMI 2.0 over the network, by ipmitool. The password is in its environment, which only its own user can read."""

from __future__ import annotations

import os
import re
import subprocess

from ansible.module_utils.slurmstead.power import address
from ansible.module_utils.slurmstead.power.model import Machine, PowerError, RefusedError

REFUSED = re.compile(
    r"unauthorized|password|privilege(?! level to \w+ failed$)|RAKP 2 HMAC|invalid user name",
    re.IGNORECASE | re.MULTILINE,
)
"""ipmitool's errors when a BMC does not accept user or password.

"Set Session Privilege Level to ADMINISTRATOR failed" without a reason is a BMC that did not answer (lanplus.c).
"""

STATUS = re.compile(r"Chassis Power is (on|off)")

PORT = 623
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Ipmi:
    """A BMC."""

    orderly = True

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def _run(self, *words: str) -> str:
        machine = self.machine
        host, port = address.split(machine.address, PORT)
        # -N and -R: seconds until ipmitool repeats a packet, and how often. Without -v, it does not tell a wrong
        # password from a BMC that is off.
        command = ["ipmitool", "-I", "lanplus", "-H", host, "-p", str(port), "-U", machine.user, "-E"]
        command += [
            *(["-C", str(machine.cipher)] if machine.cipher else []),
            "-v",
            "-N",
            "1",
            "-R",
            "3",
            "chassis",
            "power",
            *words,
        ]
        own = {"PATH": os.environ.get("PATH", PATH), "LC_ALL": "C", "IPMI_PASSWORD": machine.password}
        try:
            done = subprocess.run(
                command, env=own, capture_output=True, text=True, timeout=machine.seconds * 2, check=False
            )
        except subprocess.TimeoutExpired:
            raise PowerError(f"{machine.address} does not answer IPMI within {machine.seconds * 2:.0f} s") from None
        except FileNotFoundError:
            raise PowerError("ipmitool is not installed") from None
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"
            kind = RefusedError if REFUSED.search(said) else PowerError
            raise kind(f"{machine.address}, {' '.join(words)}: {said.splitlines()[-1]}")
        return done.stdout

    def on(self, stale: bool = False) -> None:
        """Switch on; a machine that is on stays on."""
        self._run("on")

    def off(self) -> None:
        """Cut."""
        if self.is_on():
            self._run("off")

    def shut_down(self) -> None:
        """Press the power button by ACPI."""
        self._run("soft")

    def is_on(self) -> bool | None:
        """Ask the BMC."""
        said = self._run("status")
        found = STATUS.search(said)
        if found:
            return found[1] == "on"
        raise PowerError(f"{self.machine.address} answers with an unknown power status: {said[:80]}")
