# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Check whether a machine is on, wait until it is, or switch it off and wait until it is off.

Arguments:

state      seen: return whether it is on; on: wait until it accepts a login; off: switch it off
deadline   timeout in seconds

Ansible's own connection cannot do this: when a machine is off, Ansible drops it from the run.
"""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import time
from typing import Any

import ansible.module_utils
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
machine_answer = importlib.import_module("ansible.module_utils.slurmstead.reach.answer")
deadlines = importlib.import_module("ansible.module_utils.slurmstead.reach.deadline")
reach = importlib.import_module("ansible.module_utils.slurmstead.reach.ssh")

CONNECT_SECONDS = 30
"""Timeout for a machine's answer; emulated machines are slow."""

LOGIN_SECONDS = 120
"""Timeout after which a login counts as hanging."""

PAUSE = 2.0

OPTIONS = ("-o", "ControlPath=none", "-o", f"ConnectTimeout={CONNECT_SECONDS}", "-o", "LogLevel=INFO")
"""A new connection: a shared one would hide that the machine is gone. Of a repeated option, ssh takes the first.

At log levels below INFO, ssh does not report that a machine stopped answering.
"""


class Machine:
    """A machine, as this computer reaches it."""

    def __init__(self, name: str, variables: Any) -> None:
        self.name = name
        self.variables = variables
        self.is_here = reach.is_here(variables)

    def run(self, *command: str) -> tuple[int, str]:
        """Run a command on it; returns its status and errors."""
        try:
            done = subprocess.run(
                reach.command_on(self.variables, self.name, command, OPTIONS),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LOGIN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 255, f"no login within {LOGIN_SECONDS} s"
        return done.returncode, done.stderr.strip()

    def look(self) -> tuple[bool, str]:
        """Return whether it answers, even with a refusal; if it does not, also why that proves nothing about it."""
        code, said = self.run("true")
        if not (code and machine_answer.is_silent(said)):
            return True, ""
        other = machine_answer.silent_on_the_way(said, self.addresses())
        return False, other and f"{other}, on the way to {self.name}, does not answer"

    def is_on(self) -> bool:
        """Return whether it answers.

        :raises AnsibleActionFail: that is not known, because a jump host does not answer
        """
        on, unknown = self.look()
        if unknown:
            raise AnsibleActionFail(f"{unknown}, so it is not known whether {self.name} is off")
        return on

    def addresses(self) -> set[str]:
        """Return the addresses that ssh prints for the machine itself; its own configuration may name them."""
        command = ["ssh", "-G", *OPTIONS, *reach.ssh_command(self.variables, self.name)[1:]]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return {line.split()[-1] for line in done.stdout.splitlines() if line.startswith("hostname ")}


class ActionModule(ActionBase):
    """Checks, waits for or switches off the current machine."""

    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return whether the machine is `on`, and a message in `said`; `unknown` says why it may be on nevertheless."""
        del tmp
        variables = task_vars or {}
        name = str(variables["inventory_hostname"])
        machine = Machine(name, variables["hostvars"][name])
        deadline = float(self._task.args.get("deadline", 300))
        if self._task.args["state"] == "seen":
            on, unknown = machine.look()
            said = "" if on else f"{name} does not answer; is it on?"
            return {"changed": False, "on": on, "unknown": unknown, "said": said}
        if self._task.args["state"] == "on":
            return wait_until_on(name, machine, deadline)
        return switch_off(name, machine, deadline, self._task.check_mode)


def wait_until_on(name: str, machine: Machine, deadline: float) -> dict[str, Any]:
    """Wait until a machine accepts a login; fail as unreachable if it does not."""
    started, waited = time.monotonic(), False
    while True:
        code, said = machine.run("true")
        passed = time.monotonic() - started
        if not code:
            return {"changed": False, "on": True, "said": f"{name} answers after {passed:.0f} s" if waited else ""}
        if passed > deadline:
            why = said.splitlines()[-1] if said else f"ssh exited with {code}"
            return {
                "unreachable": True,
                "msg": f"{name} was not reached within {deadline / 60:.0f} min ({why}); is it on?",
            }
        waited = True
        time.sleep(PAUSE)


def switch_off(name: str, machine: Machine, deadline: float, check_mode: bool) -> dict[str, Any]:
    """Switch a machine off and wait until it is. The one that this runs on ends after that by itself."""
    if not machine.is_on():
        return {"changed": False, "on": False, "said": f"{name} is off"}
    started = time.monotonic()
    if check_mode:
        return {"changed": True, "on": True, "said": f"{name} would be switched off"}
    code, said = machine.run(*reach.as_root("systemctl", "poweroff"))
    if code and not machine_answer.ENDED.search(said):
        raise AnsibleActionFail(f"{name} cannot be switched off: {said or f'ssh exited with {code}'}")
    if deadlines.wait_while(lambda: not machine.is_here and machine.is_on(), deadline, PAUSE):
        raise AnsibleActionFail(f"{name} still answers {deadline:.0f} s after it was switched off; see its console")
    return {"changed": True, "on": False, "said": f"{name} is off", "seconds": time.monotonic() - started}
