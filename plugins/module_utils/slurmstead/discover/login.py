# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Logs in to a machine that the inventory does not know, with the operator's key, through control."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.discover.identity import SERIAL
from ansible.module_utils.slurmstead.reach import remote_call, ssh
from ansible.module_utils.slurmstead.reach.commands import printable

SECONDS = 240
"""Time limit of a measurement: each disk is read for up to 30 s, four at a time."""

KEPT = ("ansible_private_key_file", "ansible_ssh_private_key_file")
"""Variables of control that also count for new machines."""

KEY_OPTIONS = ("certificatefile", "identitiesonly", "identityagent", "identityfile")
"""Options of ssh_config(5) that name keys."""

ALIAS = "slurmstead-discovered"


def command(variables: Mapping[str, Any], address: str, user: str, known_hosts: str) -> list[str]:
    """Return the command that runs a Python program of its input as root on a machine.

    :param variables: of control, through which the connection goes
    :param known_hosts: file with the host keys that control saw; no other key is accepted
    """
    options = {
        "ControlPath": "none",
        "ForwardAgent": "no",
        "GlobalKnownHostsFile": "/dev/null",
        "HostKeyAlias": ALIAS,
        "ProxyCommand": proxy(variables),
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "UserKnownHostsFile": known_hosts,
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    kept = {name: variables[name] for name in KEPT if variables.get(name)}
    target = {**kept, "ansible_ssh_common_args": keys(variables), "ansible_host": address, "ansible_user": user}
    return ssh.command_on(target, address, ssh.as_root("/usr/bin/python3", "-IS", "-"), words)


def keys(variables: Mapping[str, Any]) -> str:
    """Return what names keys in the arguments of ssh for control. The others are for the way to control only.

    With -J, ssh refuses a ProxyCommand, and -A forwards the agent whatever ForwardAgent is. A file (-F) can name keys,
    and undoes no option of the command.

    >>> keys({"ansible_ssh_common_args": "-A -J ann@jump -i key", "ansible_ssh_extra_args": "-oIdentitiesOnly=yes"})
    '-i key -o IdentitiesOnly=yes'
    """
    given = (str(variables.get(f"ansible_ssh_{name}_args") or "") for name in ("common", "extra"))
    words, kept = iter(shlex.split(" ".join(given))), []
    for word in words:
        flag, value = word[:2], word[2:]
        if flag not in ("-F", "-i", "-o"):
            continue
        value = value or next(words, "")
        # ssh accepts a space or an equals sign between an option's name and its value.
        if flag != "-o" or re.split(r"[\s=]", value.strip(), maxsplit=1)[0].lower() in KEY_OPTIONS:
            kept += [flag, value]
    return shlex.join(kept)


def proxy(variables: Mapping[str, Any]) -> str:
    """Return ssh's ProxyCommand through control; `none` if control is this computer.

    >>> proxy({"ansible_host": "10.0.0.1", "ansible_user": "ann"}).split()[-4:]
    ['-W', "'[%h]:%p'", 'ann@10.0.0.1', '--']
    """
    if ssh.is_here(variables):
        return "none"
    *options, target, end = ssh.ssh_command(variables, str(variables.get("inventory_hostname") or ""))
    return shlex.join([*(word.replace("%", "%%") for word in options), "-W", "[%h]:%p", target, end])


def measure(variables: Mapping[str, Any], record: Mapping[str, Any], users: Sequence[str]) -> dict[str, Any]:
    """Return `user` and `machine` (see machine.py) of the first login that works, else `login`, why none does."""
    said = ""
    with tempfile.TemporaryDirectory(prefix="stead-") as directory:
        keys = Path(directory) / "known_hosts"
        keys.write_text("".join(f"{ALIAS} {key}\n" for key in record["host_keys"]))
        for user in users:
            machine, problem = _ask(command(variables, str(record["address"]), user, str(keys)))
            if machine is not None:
                return {"user": user, "machine": machine, "login": ""}
            said = said or f"{user}: {problem}"
    return {"user": "", "machine": None, "login": said}


def _ask(words: Sequence[str]) -> tuple[dict[str, Any] | None, str]:
    program = remote_call.program("discover.machine", "measure", {})
    try:
        done = subprocess.run(words, input=program, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, f"no answer within {SECONDS} s"
    if done.returncode == 0:
        try:
            return _measurement(json.loads(done.stdout.splitlines()[-1])), ""
        except (IndexError, KeyError, TypeError, ValueError):
            return None, "the answer is not a measurement"
    said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    # The machine may have written it.
    return None, printable(said)


def _measurement(found: Any) -> dict[str, Any]:
    """Return what a machine says about itself, of which nothing is trusted; its serial is empty if it cannot be one.

    :raises ValueError: it is not what `machine.measure` returns; so do KeyError and TypeError
    """
    texts = [found["serial"], found["product"]]
    numbers = [one for one in (found["cores"], found["memory"]) if one is not None]
    for disk in found["disks"]:
        texts += [disk["name"], disk["id"] or "", *disk["content"]]
        numbers.append(disk["size"])
    if not all(isinstance(one, int) for one in numbers):
        raise ValueError("it has values of other types")
    # They are shown on a terminal, and become comments of hosts.yml.
    if not all(isinstance(one, str) and one.isprintable() for one in texts):
        raise ValueError("it has texts that cannot be printed")
    return {**found, "serial": found["serial"] if SERIAL.fullmatch(found["serial"]) else ""}
