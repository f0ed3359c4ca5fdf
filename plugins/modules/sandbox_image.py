#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Make, list and remove the images in which jobs can run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_image
short_description: Make, list and remove the images in which jobs can run
description:
  - Works on the machine that stores the share. An image is complete, or it does not exist.
  - All files of an image belong to root, only root can write them, and no program in it is setuid.
attributes:
  check_mode: {support: full}
options:
  store: {type: path, required: true, description: Directory of the images.}
  state: {type: str, choices: [present, absent, listed], required: true, description: What to do.}
  name: {type: str, default: '', description: Name of the image; not with RV(state=listed).}
  release: {type: str, default: '', description: Release of Debian; by default this machine's.}
  packages: {type: list, elements: str, default: [], description: Packages of Debian.}
  given: {type: path, description: 'Tar file with requirements.txt, wheels/ or archive.tar.'}
  archive: {type: str, default: '', description: Name of the archive in O(given), or empty.}
  used: {type: dict, default: {}, description: Numbers of the jobs that use an image, by its name; see sandbox_jobs.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Make an image
  sandbox_image:
    store: /srv/share/images
    state: present
    name: python
    packages: [python3-numpy]
"""

RETURN = r"""
images: {description: "All images: name, source, made, bytes.", type: list, elements: dict, returned: success}
"""

import pathlib
import platform

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.sandbox import building, images


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent", "listed"], "required": True},
            "name": {"type": "str", "default": ""},
            "release": {"type": "str", "default": ""},
            "packages": {"type": "list", "elements": "str", "default": []},
            "given": {"type": "path"},
            "archive": {"type": "str", "default": ""},
            "used": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    given = module.params
    store, name = given["store"], given["name"]
    try:
        if given["state"] == "present" and not module.check_mode:
            building.build(
                store,
                name=name,
                release=given["release"] or platform.freedesktop_os_release()["VERSION_CODENAME"],
                packages=given["packages"],
                given=given["given"] or "",
                archive=given["archive"],
            )
        elif given["state"] == "absent" and not module.check_mode:
            building.remove(store, name, images.jobs_of(name, given["used"]))
    except images.ImageError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=given["state"] != "listed", images=images.listed(pathlib.Path(store)))


if __name__ == "__main__":
    main()
