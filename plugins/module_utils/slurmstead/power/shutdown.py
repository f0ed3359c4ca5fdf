# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Shuts a system down, and asks the network whether it runs."""

from __future__ import annotations

import socket

from ansible.module_utils.slurmstead.power.methods import method
from ansible.module_utils.slurmstead.power.model import Machine, PowerError
from ansible.module_utils.slurmstead.reach.commands import run

KEY = "/etc/slurmstead/power-key"
"""It may do nothing on a worker but shut it down; see roles/power."""

SSH = (
    *("ssh", "-i", KEY, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"),
    # The key opens nothing, so an impostor gains nothing by it; and a machine that was replaced has another key.
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
)

SSH_PORT = 22
ANSWER = 2.0
"""Seconds in which a system accepts or refuses a connection."""


def answers(machine: Machine) -> bool:
    """Whether the machine's kernel answers on the network."""
    return answers_at(machine.host)


def answers_at(host: str) -> bool:
    """Whether the kernel of the machine with this address answers on the network."""
    try:
        with socket.create_connection((host, SSH_PORT), ANSWER):
            return True
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def shut_down(machine: Machine) -> None:
    """Tell the system to shut down: through its device if that can, otherwise by ssh.

    :raises PowerError: it was not told
    """
    device = method(machine)
    if device.orderly:
        device.shut_down()
        return
    code, _, said = run(*SSH, f"root@{machine.host}", "poweroff", seconds=20)
    # A system that goes down at once cuts the connection. What sshd closes before the login told nothing.
    if code not in (0, 255) or (code == 255 and f"Connection to {machine.host} closed" not in said):
        raise _error(machine, code, said)


def check(machine: Machine) -> None:
    """Check that control can log in to shut the system down, unless its device does that. It stays on.

    :raises PowerError: it cannot
    """
    if method(machine).orderly:
        return
    # A request for a forwarded port runs no command, not even that of the key. sshd refuses it, but after the login.
    code, _, said = run(*SSH, "-W", f"localhost:{SSH_PORT}", f"root@{machine.host}", seconds=20)
    if code and "administratively prohibited" not in said:
        raise _error(machine, code, said)


def _error(machine: Machine, code: int, said: str) -> PowerError:
    last = said.strip().splitlines()[-1] if said.strip() else ""
    return PowerError(f"ssh to {machine.host} ends with {code}: {last}")
