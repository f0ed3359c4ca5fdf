# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A new connection to a machine, which proves what Ansible's own, older connection cannot."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from ansible.module_utils.slurmstead.reach import ssh

OPTIONS = ("-o", "ControlPath=none", "-o", "LogLevel=INFO")

ANSWERED = re.compile("Permission denied|Host key verification failed|Too many authentication|Unable to negotiate")
"""ssh's errors after sshd has answered. A machine with a password, for example, does not accept this login."""


def silence(variables: Any, host: str, seconds: int) -> str:
    """Return why a machine does not answer a new connection; empty if it does, even with a refusal to log in."""
    said = refusal(variables, host, seconds)
    return "" if ANSWERED.search(said) else _last_line(said)


def refusal(variables: Any, host: str, seconds: int) -> str:
    """Return what ssh prints if a new connection cannot run a command on a machine; empty if it can."""
    try:
        done = subprocess.run(
            ssh.command_on(variables, host, ["true"], (*OPTIONS, "-o", f"ConnectTimeout={max(5, seconds // 2)}")),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no login within {seconds} s"
    return (done.stderr.strip() or "ssh failed") if done.returncode else ""


def _last_line(text: str) -> str:
    return (text.splitlines() or [""])[-1]
