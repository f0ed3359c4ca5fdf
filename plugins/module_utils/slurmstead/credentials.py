# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Signs MUNGE credentials and reads them, as a user who owns nothing."""

from __future__ import annotations

import subprocess

SECONDS = 15
USER: str | None = "nobody"
GROUP: str | None = "nogroup"


def munge(command: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run munge or unmunge as an ordinary user, with `text` as its input."""
    return subprocess.run(
        command.split(), input=text, capture_output=True, text=True, timeout=SECONDS, user=USER, group=GROUP
    )


def is_deaf() -> bool:
    """Say whether this node's munged cannot be asked. It may run so: Debian's package takes away its socket."""
    try:
        return munge("/usr/bin/munge --no-input", "").returncode != 0
    except subprocess.TimeoutExpired:
        return False
