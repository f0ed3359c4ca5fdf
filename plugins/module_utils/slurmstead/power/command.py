# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Your own commands. They get the name of the machine as POWER_NODE and the password as POWER_PASSWORD."""

from __future__ import annotations

import os
import subprocess

from ansible.module_utils.slurmstead.power.model import Machine, PowerError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Command:
    """Runs `on`, `off`, and `status`, which exits with 0 if the supply is on and with 1 if it is off.

    `shut_down` begins an orderly shutdown, if there is one.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.orderly = "shut_down" in machine.commands

    def _run(self, verb: str) -> tuple[int, str]:
        machine = self.machine
        own = {"PATH": os.environ.get("PATH", PATH), "POWER_NODE": machine.name, "POWER_PASSWORD": machine.password}
        command = list(machine.commands[verb])
        try:
            done = subprocess.run(
                command, env=own, capture_output=True, text=True, errors="replace", timeout=machine.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise PowerError(f"{command[0]} did not end within {machine.seconds:.0f} s") from None
        except OSError as error:
            raise PowerError(f"{command[0]} cannot be run: {error.strerror}") from None
        return done.returncode, (done.stderr.strip() or done.stdout.strip()).partition("\n")[0]

    def _must(self, verb: str) -> None:
        code, said = self._run(verb)
        if code:
            raise PowerError(f"the command `{verb}` of {self.machine.name} exits with {code}: {said}")

    def on(self, stale: bool = False) -> None:
        """Run `on`."""
        self._must("on")

    def off(self) -> None:
        """Run `off`."""
        self._must("off")

    def shut_down(self) -> None:
        """Run `shut_down`."""
        self._must("shut_down")

    def is_on(self) -> bool | None:
        """Run `status`, if there is one."""
        if "status" not in self.machine.commands:
            return None
        code, said = self._run("status")
        if code not in (0, 1):
            raise PowerError(f"the command `status` of {self.machine.name} exits with {code}: {said}")
        return code == 0
