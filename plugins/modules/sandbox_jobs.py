#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Find the jobs that use images, also those that wait."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_jobs
short_description: Find the jobs that use images
description: Asks slurmctld for jobs that run or wait, and for their steps. Changes nothing.
attributes:
  check_mode: {support: full}
options:
  images: {type: path, required: true, description: Directory of the images, as jobs name it.}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Find the jobs that use images
  sandbox_jobs:
    images: /share/images
"""

RETURN = r"""
used:
  description: Numbers of jobs by the name of their image; by C(*), those that may use any image.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.sandbox import images

SECONDS = 60.0


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"images": {"type": "path", "required": True}},
        supports_check_mode=True,
    )
    shown = {}
    for kind in ("job", "step"):
        code, out, err = run("scontrol", "--oneliner", "show", kind, seconds=SECONDS)
        if code:
            module.fail_json(
                msg=f"slurmctld cannot say which images are in use: {err.strip() or out.strip()}. Nothing was changed"
            )
        shown[kind] = out
    module.exit_json(changed=False, used=images.users(shown["job"], shown["step"], module.params["images"]))


if __name__ == "__main__":
    main()
