#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Install locked Python packages in a directory of a machine that needs no Internet access."""

from __future__ import annotations

DOCUMENTATION = r"""
module: jupyterhub_environment
short_description: Install locked Python packages in a directory of a machine that needs no Internet access
description:
  - Creates a virtual environment of the machine's own Python from a lock with hashes. The controlling computer fetches
    the packages and copies them to the machine.
  - Each set of packages is a directory of its own, and the link C(current) points to the newest one, so programs that
    run keep their files. What was replaced is removed after 30 days, by the next replacement.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  directory: {type: path, required: true, description: Directory of the environments.}
  lock: {type: str, required: true, description: 'Packages with versions and hashes, as uv or pip-tools write them.'}
  client: {type: bool, default: false, description: Whether the client of Slurmstead is installed as well.}
  wheels: {type: path, description: 'Directory in which users find the client and what it needs; only with I(client).'}
  look: {type: bool, default: false, description: Only report the machine's Python.}
  digest: {type: str, description: Name of the environment; the action plugin computes it.}
  requirements: {type: str, description: The packages for this machine; the action plugin chooses them.}
  archive: {type: path, description: The wheels in a tar archive; the action plugin copies it.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Install JupyterHub
  jupyterhub_environment:
    directory: /opt/slurmstead-jupyterhub
    lock: "{{ lookup('ansible.builtin.file', 'hub.txt') }}"
"""

RETURN = r"""
python: {description: Version of the machine's Python., type: str, returned: always}
architecture: {description: Output of uname -m., type: str, returned: always}
path: {description: Directory of the environment., type: str, returned: always}
"""

import os
import pathlib
import tarfile

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.jupyterhub import environment

FACTS = "import platform; print(platform.python_version(), platform.machine())"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "lock": {"type": "str", "required": True},
            "client": {"type": "bool", "default": False},
            "wheels": {"type": "path"},
            "look": {"type": "bool", "default": False},
            "digest": {"type": "str"},
            "requirements": {"type": "str"},
            "archive": {"type": "path"},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    given = module.params
    code, out, err = module.run_command([environment.PYTHON, "-I", "-c", FACTS])
    if code:
        module.fail_json(msg=f"{environment.PYTHON} cannot be used: {err.strip()}")
    said = dict(zip(("python", "architecture"), out.split(), strict=True))
    if given["look"]:
        module.exit_json(changed=False, **said)
    wheels = pathlib.Path(given["wheels"]) if given["wheels"] else None
    wanted = environment.Environments(pathlib.Path(given["directory"]), str(given["digest"]), wheels)
    shown = wanted.differences()
    try:
        if not module.check_mode:
            if not wanted.is_installed:
                if not given["archive"]:
                    module.exit_json(changed=False, missing=True, **said)
                wanted.install(pathlib.Path(given["archive"]), given["requirements"])
            if not wanted.is_current:
                wanted.switch()
            if wanted.wheels_differ:
                wanted.publish()
    except (OSError, tarfile.TarError, environment.InstallError) as error:
        module.fail_json(msg=f"{wanted.path} cannot be installed: {error}")
    diff = [{"prepared": f"{line}\n"} for line in shown]
    module.exit_json(changed=bool(shown), path=str(wanted.path), diff=diff, **said)


if __name__ == "__main__":
    main()
