#!/usr/bin/python
# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Make what JupyterHub and its proxy share, and a certificate."""

from __future__ import annotations

DOCUMENTATION = r"""
module: jupyterhub_secrets
short_description: Make what JupyterHub and its proxy share, and a certificate
description:
  - Creates a secret of hub and proxy. With I(names), also an authority whose key stays on this machine, and a
    certificate by it, which is made again if the names change or half a year before it ends.
  - What was made is reported, and never its content.
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
options:
  directory: {type: path, required: true, description: Directory of the files.}
  names: {type: list, elements: str, default: [], description: Names and addresses in the certificate.}
  certificate: {type: path, description: 'Certificate of the site, which is only read; without I(names).'}
author: [Slurmstead]
"""

EXAMPLES = r"""
- name: Make the certificate of the hub
  jupyterhub_secrets:
    directory: /etc/slurmstead/jupyterhub
    names: [control, 10.0.0.1]
"""

RETURN = r"""
digest: {description: 'Digest of secret and certificate; C(new) in check mode.', type: str, returned: always}
made: {description: 'Files that were made, or would be, and why.', type: list, elements: str, returned: always}
"""

import pathlib

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.slurmstead.jupyterhub import certificate


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "names": {"type": "list", "elements": "str", "default": []},
            "certificate": {"type": "path"},
        },
        supports_check_mode=True,
    )
    wanted = certificate.Secrets(pathlib.Path(module.params["directory"]), module.params["names"])
    own = pathlib.Path(module.params["certificate"]) if module.params["certificate"] else None
    try:
        missing = wanted.missing()
        if missing and not module.check_mode:
            wanted.make()
        digest = "new" if missing and module.check_mode else wanted.digest(own)
    except (OSError, certificate.CertificateError) as error:
        module.fail_json(msg=f"{wanted.directory}: {error}")
    diff = [{"prepared": f"{line}\n"} for line in missing]
    module.exit_json(changed=bool(missing), digest=digest, made=missing, diff=diff)


if __name__ == "__main__":
    main()
