# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Update a machine's ssh host key in known_hosts of this computer, without logging in.

Arguments:

state         known: ssh must trust the key that the machine presents
              vouched: the key must have the given fingerprint, even if ssh trusts another one
              unknown: forget the machine's keys
              shown: return the fingerprint as `host_key`, empty if there is no key by the deadline; changes nothing
fingerprint   of the key to trust (`SHA256:…`), read on the machine's console
deadline      seconds to wait for a key that is shown

ssh itself reports whether it trusts a key and where it looks for it (`ssh -G`), so all its options apply. A machine
without a key is reported only if a fingerprint is needed; otherwise the next task reports that it is unreachable.
"""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import tempfile
import time
from typing import Any, NamedTuple

import ansible.module_utils
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

# ansible-core extends this path for modules on their way to a machine, not for plugins on the controller.
ansible.module_utils.__path__.append(str(pathlib.Path(__file__).parents[1] / "module_utils"))
reach = importlib.import_module("ansible.module_utils.slurmstead.reach.ssh")

SECONDS = 60
"""Timeout for a machine to present its key; emulated machines are slow."""

ONLY_LOOK = ("PreferredAuthentications=none", "ControlPath=none", f"ConnectTimeout={SECONDS}", "CheckHostIP=no")
"""Options with which ssh(1) exchanges keys over a new connection without logging in."""

PAUSE = 5.0

REFUSED = "Host key verification failed"


class Key(NamedTuple):
    """A key that a machine presents: its line for known_hosts(5), fingerprint and type."""

    line: str
    fingerprint: str
    kind: str


class Place(NamedTuple):
    """The name, and the files, under which ssh looks for a machine's key."""

    name: str
    files: tuple[pathlib.Path, ...]


def place(said: str) -> Place:
    """Return the place from the output of `ssh -G`.

    >>> place("hostname 10.0.0.4\\nport 2222\\nuserknownhostsfile /k /l")
    Place(name='[10.0.0.4]:2222', files=(PosixPath('/k'), PosixPath('/l')))
    """
    options = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    address, port = options["hostname"], options.get("port", "22")
    name = options.get("hostkeyalias") or (address if port == "22" else f"[{address}]:{port}")
    files = [pathlib.Path(word).expanduser() for word in options.get("userknownhostsfile", "").split()]
    return Place(name, tuple(files))


class ActionModule(ActionBase):
    """Adds or removes the host key of the current machine."""

    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return whether known_hosts changed; fail if a key is new and no fingerprint confirms it."""
        del tmp
        variables = task_vars or {}
        host = str(variables["inventory_hostname"])
        if reach.is_here(variables):
            return {"changed": False}
        # All words but the last, `--`, are options to reach the machine; of a repeated option, ssh takes the first.
        ssh = reach.ssh_command(variables["hostvars"][host], host)[1:-1]
        where = place(_run("ssh", "-G", *ssh).stdout)
        if self._task.args["state"] == "unknown":
            forgotten = self._forget(where)
            return {"changed": forgotten, "said": f"{host}: forgot the host key of {where.name}" if forgotten else ""}
        if self._task.args["state"] == "shown":
            end = time.monotonic() + float(self._task.args["deadline"])
            while not (shown := _presented(ssh)) and time.monotonic() < end:
                time.sleep(PAUSE)
            return {"changed": False, "host_key": shown.fingerprint if shown else ""}
        refused = REFUSED in _run("ssh", *_options(*ONLY_LOOK), *ssh, "true").stderr
        wanted = self._task.args.get("fingerprint")
        vouched = self._task.args["state"] == "vouched"
        key = _presented(ssh) if refused or vouched else None
        if key is None:
            return {"unreachable": True, "msg": f"{host} does not answer; is it on?"} if vouched else {"changed": False}
        if key.fingerprint != wanted:
            raise AnsibleActionFail(_question(host, key, wanted) if refused else _doubt(host, key, wanted))
        if not refused:
            return {"changed": False}
        self._forget(where)
        if not self._task.check_mode:
            where.files[0].parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with where.files[0].open("a") as file:
                file.write(key.line)
        return {"changed": True, "said": f"{host}: added the host key {key.fingerprint}"}

    def _forget(self, where: Place) -> bool:
        known = [file for file in where.files if _run("ssh-keygen", "-F", where.name, "-f", str(file)).stdout]
        for file in [] if self._task.check_mode else known:
            _run("ssh-keygen", "-R", where.name, "-f", str(file))
        return bool(known)


def _presented(ssh: list[str]) -> Key | None:
    """Return the key that a machine presents, as ssh writes it to an empty known_hosts."""
    with tempfile.TemporaryDirectory(prefix="stead-") as directory:
        file = pathlib.Path(directory, "known_hosts")
        believe = (f"UserKnownHostsFile={file}", "GlobalKnownHostsFile=/dev/null", "StrictHostKeyChecking=accept-new")
        _run("ssh", *_options(*ONLY_LOOK, *believe), *ssh, "true")
        shown = _run("ssh-keygen", "-l", "-f", str(file)).stdout.split()
        return Key(file.read_text(), shown[1], shown[-1].strip("()")) if shown else None


def _question(host: str, key: Key, wanted: str | None) -> str:
    """Return the message for an unknown key: what to check before trusting it."""
    refused = f", which is not {wanted}" if wanted else ""
    return (
        f"{host} presents a key that this computer does not know: {key.fingerprint} ({key.kind}){refused}; the machine "
        "was not changed. Compare it with what the machine's console shows (for key in /etc/ssh/ssh_host_*.pub; do "
        "ssh-keygen -lf $key; done), then pass it with --host-key"
    )


def _doubt(host: str, key: Key, wanted: str | None) -> str:
    """Return the message for a machine that may not have been replaced, and how to confirm that it was."""
    if wanted:
        return (
            f"{host} presents the host key that is already known ({key.fingerprint}), not {wanted}; the "
            "machine was not changed. Is the old machine still on at this address?"
        )
    return (
        f"{host} presents the host key that is already known, so it looks like the old machine, which was not changed. "
        f"If it is a new machine with the old machine's disk, confirm with --host-key {key.fingerprint}"
    )


def _options(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("-o", setting)]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * SECONDS, check=False
    )
