# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""How this computer reaches a machine over a connection other than Ansible's."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

AS_ROOT = '[ "$(id -u)" -eq 0 ] && exec "$@"; exec sudo -n "$@"'
"""Runs its arguments as root. If the login user is root, sudo may be missing; Ansible does not need it then either."""


def as_root(*command: str) -> list[str]:
    """Return a command that runs another one as root; the user must be root or able to use sudo without a password."""
    return ["sh", "-c", AS_ROOT, "sh", *command]


def is_here(variables: Mapping[str, Any]) -> bool:
    """Say whether a machine is this computer, according to its Ansible variables."""
    return variables.get("ansible_connection") == "local"


def ssh_command(variables: Mapping[str, Any], host: str) -> list[str]:
    """Return the beginning of a command that runs another one on a host, from the host's Ansible variables.

    >>> ssh_command({"ansible_host": "10.0.0.3", "ansible_user": "ansible", "ansible_port": 2222}, "node3")[-4:]
    ['-p', '2222', 'ansible@10.0.0.3', '--']
    """

    def given(name: str) -> str:
        """Return a setting of Ansible's ssh plugin: of a variable's two names, the longer wins."""
        return str(variables.get(f"ansible_ssh_{name}") or variables.get(f"ansible_{name}") or "")

    words = f"{variables.get('ansible_ssh_common_args') or ''} {variables.get('ansible_ssh_extra_args') or ''}"
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", *shlex.split(words)]
    if key := given("private_key_file") or os.environ.get("ANSIBLE_PRIVATE_KEY_FILE"):
        options += ["-i", os.path.expanduser(key)]
    if port := given("port"):
        options += ["-p", port]
    user, address = given("user") or os.environ.get("ANSIBLE_REMOTE_USER"), given("host") or host
    return ["ssh", *options, f"{user}@{address}" if user else address, "--"]


def command_on(
    variables: Mapping[str, Any], host: str, command: Sequence[str], options: Sequence[str] = ()
) -> list[str]:
    """Return the command line that runs a command on a host or this computer; `options` override the inventory's.

    >>> command_on({"ansible_host": "10.0.0.3"}, "node3", ["echo", "two  words"], ["-v"])[-3:]
    ['10.0.0.3', '--', "echo 'two  words'"]
    """
    if is_here(variables):
        return list(command)
    # ssh joins words without quoting them.
    return ["ssh", *options, *ssh_command(variables, host)[1:], shlex.join(command)]
