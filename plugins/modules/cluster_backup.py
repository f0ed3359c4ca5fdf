#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Back up a cluster into one archive: the half that reads the control node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_backup
short_description: Back up a cluster into one archive
description:
  - Reads slurmctld's state (also while slurmctld runs), the MUNGE key, Slurm's configuration and, where slurmdbd runs,
    its database from the control node, and the recorded hardware from beside the inventory. The archive is written on
    the computer that runs Ansible, readable only by its owner, and is read back before it gets its final name. Nothing
    is written on the control node.
  - Reports expected problems in I(problems) instead of failing, because the task hides its result.
attributes:
  check_mode: {support: full}
  diff_mode: {support: none}
options:
  cluster: {type: str, required: true, description: Name of the cluster.}
  output:
    description: Path of the archive; by default a file in the user's state directory, named after cluster and time.
    type: path
  hardware: {type: path, required: true, description: Directory of the recorded hardware.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Back up the cluster
  cluster_backup:
    cluster: lab
    hardware: "{{ inventory_dir }}/hardware"
  no_log: true
  diff: false
  register: backup
"""

RETURN = r"""
problems: {description: Why there is no archive, type: list, elements: str, returned: always}
report: {description: 'Path and size of the archive, and its manifest.', type: dict, returned: without problems}
"""

import base64
import pathlib
import socket
import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.accounting import storage
from ansible.module_utils.slurmstead.accounting.storage import StorageError
from ansible.module_utils.slurmstead.backup import archive as backup_archive
from ansible.module_utils.slurmstead.backup import ownership
from ansible.module_utils.slurmstead.change.decisions import STATE
from ansible.module_utils.slurmstead.change.sets import SLURMDBD, Store
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.identity import munge
from ansible.module_utils.slurmstead.slurm import state as controller_state
from ansible.module_utils.slurmstead.slurm.daemons import Slurm
from ansible.module_utils.slurmstead.slurm.jobs import State


def jobs(state: State) -> dict[str, int] | None:
    """Return the numbers of running and pending jobs; None if slurmctld did not answer."""
    if not state.heard:
        return None
    return {"running": len(state.running), "pending": len(state.live) - len(state.running)}


def collect(cluster: str, store: Store, slurm: Slurm, key: pathlib.Path = munge.KEY) -> bytes:
    """Return the archive of a control node. Raises FileNotFoundError if a part is missing, and StorageError."""
    seen, managed = store.seen(), store.managed()
    # An administrator's edit, or the set of a killed run, may never have worked.
    files = {**seen, **{name: text for name, text in (store.proven() or {}).items() if name in managed}}
    own = [path for name in (*sorted(seen.keys() - managed), SLURMDBD) if (path := store.directory / name).is_file()]
    directory = pathlib.Path(conf_model.read(files["slurm.conf"]).value("StateSaveLocation", STATE))
    answers = slurm.answers()
    if answers:
        controller_state.wait_until_saved(directory)
    contents = {
        backup_archive.KEY: key.read_bytes(),
        **{f"{backup_archive.STATE}{name}": content for name, content in controller_state.read(directory).items()},
        **{f"{backup_archive.SLURM}{name}": text.encode(errors="surrogateescape") for name, text in files.items()},
        **{f"{backup_archive.SLURM}{path.name}": path.read_bytes() for path in own},
    }
    if storage.is_used():
        contents[backup_archive.RECORDS] = storage.dump()
    manifest = {
        "cluster": cluster,
        "control": socket.gethostname(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "slurm": slurm.version(),
        "state_directory": str(directory),
        "managed": sorted(managed),
        "owned": {path.name: ownership.read(path) for path in own},
        "jobs": jobs(slurm.state() if answers else State(heard=False)),
        "owners": slurm.owners() if answers else {},
    }
    return backup_archive.pack(manifest, contents)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"cluster": {"type": "str", "required": True}}, supports_check_mode=True)
    try:
        packed = collect(module.params["cluster"], Store(), Slurm())
    except StorageError as error:
        module.exit_json(changed=False, problems=[f"the records of the jobs cannot be read: {error}"])
    except (OSError, KeyError) as error:
        problem = f"expected a control node with Slurm, its state and a MUNGE key, seen: {error}; run `stead up` first"
        module.exit_json(changed=False, problems=[problem])
    module.exit_json(changed=False, problems=[], archive=base64.b64encode(packed).decode())


if __name__ == "__main__":
    main()
