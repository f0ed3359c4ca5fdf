# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What identifies a machine: its serial and the fingerprint of its host key.

A machine that the inventory does not know says both itself. They become values of the inventory or of a command, where
braces would be a template, and `$` a command, that runs on the operator's computer: what matches here is neither.
"""

from __future__ import annotations

import base64
import hashlib
import re

SERIAL = re.compile(r"[\w .:,/+*#-]*", re.ASCII)
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def fingerprint(key: str) -> str:
    """Return the fingerprint of a host key as ssh writes it.

    >>> fingerprint("ssh-ed25519 AAAA")
    'SHA256:cJ6AyISHokEeHuTfufIqhhSS0gxHZRUMDHlKvXD4FHw'
    """
    data = base64.b64decode(key.split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
