#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Run slurmdbd and its database."""

from __future__ import annotations

DOCUMENTATION = r"""
module: accounting_database
short_description: Run slurmdbd and its database
description:
  - Writes MariaDB's settings, with a buffer that fits the machine's memory, and creates the database and the user of
    slurmdbd. The user has no password, because MariaDB asks the kernel who connects to its Unix socket.
  - Loads a dump that M(cluster_restore) left, and keeps the previous content beside it.
  - Starts MariaDB and slurmdbd now and at boot, and waits until slurmdbd answers.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  state:
    description: Whether both run; C(stopped) deletes nothing.
    type: str
    choices: [started, stopped]
    default: started
  host: {type: str, required: true, description: Address or name with which clients reach slurmdbd.}
  cluster: {type: str, required: true, description: Name of the cluster.}
  state_directory: {type: path, required: true, description: 'Directory of the state of slurmctld.'}
  memory: {type: int, description: Size of MariaDB's buffer in MiB; by default a sixteenth of the memory.}
  deadline: {type: int, default: 300, description: Seconds until slurmdbd must answer.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Run slurmdbd and its database
  accounting_database:
    host: 192.168.1.101
    cluster: home
    state_directory: /var/lib/slurm/slurmctld
"""

RETURN = r"""
notes: {description: What was done, type: list, elements: str, returned: success}
"""

import shutil
from collections.abc import Iterator

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.accounting import storage
from ansible.module_utils.slurmstead.accounting.storage import StorageError
from ansible.module_utils.slurmstead.reach import difference, durable
from ansible.module_utils.slurmstead.reach.commands import PATH, run
from ansible.module_utils.slurmstead.reach.deadline import wait_while

CLUSTER_ID = "/usr/local/lib/slurmstead/cluster-id"
"""Also before each start of slurmctld; from 23.11 accounting is switched on by a reconfigure, which starts no unit."""

MARIADB, SLURMDBD = "mariadb.service", "slurmdbd.service"
PAUSE = 0.5


def must(*command: str) -> None:
    """Run systemctl. Raises StorageError."""
    code, out, err = run("systemctl", *command, seconds=storage.LONG)
    if code:
        raise StorageError(f"`systemctl {' '.join(command)}` failed: {(err or out).strip()}; see journalctl")


def is_up(unit: str) -> bool:
    """Say whether a unit runs and starts at boot."""
    return not (run("systemctl", "--quiet", "is-active", unit)[0] or run("systemctl", "--quiet", "is-enabled", unit)[0])


def database(text: str, dry: bool) -> Iterator[str]:
    """Yield what is done so that MariaDB runs with its settings, the database and the user."""
    old = storage.SETTINGS.read_text() if storage.SETTINGS.is_file() else ""
    if old != text:
        yield "MariaDB: new settings"
        if not dry:
            # If this run is killed before the start, the next one finds both stopped, and starts them.
            run("systemctl", "stop", SLURMDBD, seconds=storage.LONG)
            run("systemctl", "stop", MARIADB, seconds=storage.LONG)
            durable.write(storage.SETTINGS, text.encode(), mode=0o644)
    if old != text or not is_up(MARIADB):
        yield "MariaDB: start now and at boot"
        if not dry:
            must("enable", "--now", MARIADB)
    if dry and not is_up(MARIADB):
        return
    if not storage.is_set_up():
        yield f"MariaDB: create the database {storage.DATABASE} and the user {storage.USER}"
        if not dry:
            storage.query(storage.SETUP)


def daemon(host: str, cluster: str, deadline: int, dry: bool) -> Iterator[str]:
    """Yield what is done so that slurmdbd runs, with the dump that waits."""
    if storage.waits():
        yield "load the records of the restored archive"
        if not dry:
            run("systemctl", "stop", SLURMDBD, seconds=storage.LONG)
            kept = storage.restore()
            if kept:
                yield f"the records before the restore are kept in {kept}"
    if not is_up(SLURMDBD):
        yield "slurmdbd: start now and at boot"
        if not dry:
            run("systemctl", "reset-failed", SLURMDBD)
            must("enable", "--now", SLURMDBD)
    if not dry and (why := wait_while(lambda: storage.unanswered(host), deadline, PAUSE)):
        raise StorageError(f"slurmdbd does not answer at {host}: {why}; see /var/log/slurm/slurmdbd.log")
    if not is_up(SLURMDBD) or not storage.is_registered(host, cluster):
        yield f"slurmdbd: register the cluster {cluster}"
        if not dry:
            storage.register(host, cluster)


def identity(state_directory: str, cluster: str) -> Iterator[str]:
    """Yield what is done so that slurmctld has the ID of the database. Raises StorageError."""
    code, out, err = run(CLUSTER_ID, state_directory, cluster, seconds=60)
    if code:
        raise StorageError(f"{CLUSTER_ID}: {(err or out).strip()}")
    yield from out.splitlines()


def stop(dry: bool) -> Iterator[str]:
    """Yield what is done so that slurmdbd does not run; MariaDB may have other users, and stays."""
    if run("systemctl", "--quiet", "is-active", SLURMDBD)[0] == 0 or is_up(SLURMDBD):
        yield "slurmdbd: stop"
        if not dry:
            must("disable", "--now", SLURMDBD)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
            "host": {"type": "str", "required": True},
            "cluster": {"type": "str", "required": True},
            "state_directory": {"type": "path", "required": True},
            "memory": {"type": "int"},
            "deadline": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    dry, host, cluster = module.check_mode, module.params["host"], module.params["cluster"]
    text = storage.settings(module.params["memory"] or storage.buffer_size(storage.memory()))
    old = storage.SETTINGS.read_text() if storage.SETTINGS.is_file() else ""
    diff = [{"prepared": difference.text(storage.SETTINGS, old, text)}]
    try:
        if module.params["state"] == "stopped":
            notes = list(stop(dry))
            module.exit_json(changed=bool(notes), notes=notes)
        if not shutil.which("mariadbd", path=PATH):
            if dry:
                module.exit_json(changed=True, notes=["MariaDB is not installed yet"], diff=diff)
            module.fail_json(msg="MariaDB is not installed here; run `stead up` without --tags")
        notes = [*database(text, dry), *daemon(host, cluster, module.params["deadline"], dry)]
        if not dry:
            notes += identity(module.params["state_directory"], cluster)
    except (StorageError, OSError) as error:
        module.fail_json(msg=f"accounting is not available: {error}")
    module.exit_json(changed=bool(notes), notes=notes, diff=[*diff, {"prepared": "\n".join(notes)}] if notes else [])


if __name__ == "__main__":
    main()
