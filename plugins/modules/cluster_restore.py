#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Restore the archive of a cluster onto a control node: the half that runs there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_restore
short_description: Restore the archive of a cluster onto a control node
description:
  - Reports what prevents the restore, or restores slurmctld's state, the MUNGE key and Slurm's configuration, and
    beside the inventory the recorded hardware of nodes that have no record there. slurmctld is stopped and stays
    stopped; at its next start it reads the restored state. The previous files are kept beside the new ones.
  - The records of the jobs are left for M(accounting_database), which loads them.
  - Restoring the same archive a second time changes nothing, even with I(force).
  - Reports expected problems in I(problems) instead of failing, because the task hides its result.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  archive: {type: path, required: true, description: 'The file, on the computer that runs Ansible.'}
  cluster: {type: str, required: true, description: Name of the cluster that the inventory describes.}
  users: {type: list, elements: dict, default: [], description: 'Declared users, see M(local_accounts).'}
  hardware: {type: path, required: true, description: Directory of the recorded hardware.}
  look: {type: bool, default: false, description: Only report what prevents the restore.}
  force: {type: bool, default: false, description: Discard the jobs that the control node has.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Restore the archive
  cluster_restore:
    archive: /home/ann/lab-2026-11-21T15.20.31Z.tar.gz
    cluster: lab
    hardware: "{{ inventory_dir }}/hardware"
  no_log: true
  diff: false
  register: restored
"""

RETURN = r"""
problems: {description: What prevents the restore, type: list, elements: str, returned: always}
notes: {description: What the user should know, type: list, elements: str, returned: always}
"""

import base64
import json
import os
import pathlib
import platform
import pwd
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.accounting import storage
from ansible.module_utils.slurmstead.backup import archive as backup_archive
from ansible.module_utils.slurmstead.backup import ownership
from ansible.module_utils.slurmstead.backup.refusals import Target, refusals
from ansible.module_utils.slurmstead.change.sets import SLURMDBD, Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.conf import versions as conf_versions
from ansible.module_utils.slurmstead.gate import gate as gate_gate
from ansible.module_utils.slurmstead.identity import accounts, munge
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm import state as controller_state
from ansible.module_utils.slurmstead.slurm.daemons import UNIT, Slurm
from ansible.module_utils.slurmstead.slurm.jobs import State

RESTORED = "restored"
"""Name of the note that records the restored archive."""
RESTORING = "restoring"
"""Name of the note that a restore has begun: the jobs that are here then are the archive's own."""

OLD_KEY = (
    "the MUNGE key is that of the backup again; if the key was replaced since this backup, run "
    "`scripts/stead rotate-key` now"
)

STOP_SECONDS = 120.0


def here(files: Mapping[str, str], slurm: Slurm, directory: pathlib.Path) -> State:
    """Return the queue of this node's slurmctld, or the saved one that slurmctld would load; not heard if unknown.

    A damaged queue counts as empty, because slurmctld cannot load it again.
    """
    if slurm.answers():
        return slurm.state()
    if not (directory / controller_state.JOBS).exists():
        return State()
    version = slurm.version()
    if not version or "slurm.conf" not in files:
        return State(heard=False)
    passage = gate_gate.passage(files, version, State(), str(directory))
    is_damaged = any(controller_state.DAMAGED in finding.what for finding in passage.findings)
    return State() if is_damaged else passage.queue


def target(module: AnsibleModule, store: Store, slurm: Slurm, manifest: Mapping[str, Any]) -> Target:
    """Return the properties of this cluster that must fit the archive."""
    release = platform.freedesktop_os_release()
    installed = slurm.version() or conf_versions.of_release(release.get("ID", ""), release.get("VERSION_ID", ""))
    # A file that was edited since may keep slurmctld from loading the queue.
    files = store.proven() or store.seen()
    saved = conf_model.read(files.get("slurm.conf", "")).value("StateSaveLocation", manifest["state_directory"])
    _, users = accounts.wanted([], module.params["users"])
    known = {**accounts.known().users, **{user.name: user.uid for user in users}}
    return Target(module.params["cluster"], installed or "", here(files, slurm, pathlib.Path(saved)), known)


def is_done(store: Store, manifest: Mapping[str, Any], digest: str) -> bool:
    """Return whether this archive was restored here, and its state has been in use since."""
    state = pathlib.Path(manifest["state_directory"])
    return store.recall(RESTORED).get("sha256") == digest and (state / controller_state.JOBS).exists()


def strangers(owners: Mapping[str, int], users: Mapping[str, int]) -> list[str]:
    """Return a note for each user with jobs in the archive who has no account: no record says that the user left.

    :param owners: numeric ID by name
    :param users: the same, of users on this node or in the inventory

    >>> strangers({"ann": 2001, "bob": 2002}, {"ann": 2001})[0].partition(";")[0]
    'bob (2002) has jobs in the archive, but no account here'
    """
    return [
        f"{name} ({number}) has jobs in the archive, but no account here; end them with scancel and the numbers from "
        "`squeue --all`"
        for name, number in sorted(owners.items())
        if name not in users
    ]


def put(
    store: Store,
    manifest: Mapping[str, Any],
    files: Mapping[str, bytes],
    digest: str,
    key: pathlib.Path = munge.KEY,
    user: str = munge.USER,
) -> list[str]:
    """Restore everything; return where the previous files are kept, and whether the MUNGE key is another one now.

    The configuration comes last: without it slurmctld does not start, so it never starts with a partial restore.
    """
    code, _, err = run("systemctl", "stop", UNIT, seconds=STOP_SECONDS)
    if code:
        raise OSError(f"slurmctld does not stop: {err.strip()}")
    texts = {
        name: content.decode(errors="surrogateescape")
        for name, content in backup_archive.below(files, backup_archive.SLURM).items()
    }
    owner = pwd.getpwnam(conf_model.read(texts["slurm.conf"]).value("SlurmUser", "root"))
    directory = pathlib.Path(manifest["state_directory"])
    state = backup_archive.below(files, backup_archive.STATE)
    store.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    store.note(RESTORING, {"sha256": digest})
    kept = [controller_state.place(state, directory, owner.pw_uid, owner.pw_gid)]
    has_key = key.is_file() and key.read_bytes() == files[backup_archive.KEY]
    if not munge.is_right(files[backup_archive.KEY], key, user):
        munge.write(files[backup_archive.KEY], key, user)
    if backup_archive.RECORDS in files:
        # MariaDB may not be configured yet: the role accounting loads them, before slurmctld starts.
        storage.hand_over(files[backup_archive.RECORDS])
    for name, text in texts.items():
        path = store.directory / name
        if name not in manifest["managed"] and not path.exists():
            content = text.encode(errors="surrogateescape")
            ownership.write(path, content, ownership.of(manifest, name, secret=name == SLURMDBD))
    kept.append(store.publish({name: text for name, text in texts.items() if name in manifest["managed"]}))
    store.prove()
    store.note(RESTORED, {"sha256": digest, "created": manifest["created"]})
    store.note(RESTORING, {})
    notes = [f"the previous files are kept in {path}" for path in kept if path]
    return notes if has_key else [*notes, OLD_KEY]


def main() -> None:
    """Run the module."""
    # Others than root read what is in the directories that this creates, whatever root's umask.
    os.umask(0o022)
    module = AnsibleModule(
        argument_spec={
            "content_base64": {"type": "str", "no_log": True},
            "manifest": {"type": "str", "required": True},
            "sha256": {"type": "str", "required": True},
            "cluster": {"type": "str", "required": True},
            "users": {"type": "list", "elements": "dict", "default": []},
            "force": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    store, slurm = Store(), Slurm()
    manifest, digest, force = json.loads(module.params["manifest"]), module.params["sha256"], module.params["force"]
    notes, problems, changed = [], [], False
    try:
        if is_done(store, manifest, digest):
            # Also with --force: repeating an interrupted command would discard everything since the first restore.
            note = store.sets / f"{RESTORED}.json"
            notes = [
                "an earlier run has already restored this archive, so nothing was changed; to restore it again, "
                f"remove {note} first"
            ]
        else:
            has_begun = store.recall(RESTORING).get("sha256") == digest
            current = target(module, store, slurm, manifest)
            problems = refusals(manifest, current, force or has_begun)
            changed = not problems
            if changed and module.params["content_base64"] and not module.check_mode:
                _, files = backup_archive.unpack(base64.b64decode(module.params["content_base64"]))
                notes = put(store, manifest, files, digest) + strangers(manifest["owners"], current.users)
    except (OSError, KeyError, ValueError, backup_archive.DamagedError) as error:
        problems = [f"the archive cannot be restored: {error}"]
    module.exit_json(changed=changed, problems=problems, notes=notes)


if __name__ == "__main__":
    main()
