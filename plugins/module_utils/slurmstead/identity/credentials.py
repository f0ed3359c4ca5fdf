# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Creates and decodes MUNGE credentials, as the unprivileged user nobody."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

SECONDS = 15
SIGN = "/usr/bin/munge --no-input --ttl=3600"
"""An hour is munged's maximum: on a large cluster a credential is decoded minutes after it was created."""

USER: str | None = "nobody"
GROUP: str | None = "nogroup"


def munge(command: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run munge or unmunge as an ordinary user, with `text` as its input."""
    return subprocess.run(
        command.split(), input=text, capture_output=True, text=True, timeout=SECONDS, user=USER, group=GROUP
    )


def sign() -> subprocess.CompletedProcess[str]:
    """Create a credential; it is the output."""
    return munge(SIGN, "")


def is_deaf() -> bool:
    """Say whether this node's munged does not answer. It may still run: Debian's package can remove its socket."""
    try:
        return sign().returncode != 0
    except subprocess.TimeoutExpired:
        return False


def refused(credentials: Mapping[str, str]) -> dict[str, str]:
    """Return unmunge's errors for the credentials that it refuses, by name of their signer."""
    signers = sorted(credentials)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        answers = list(pool.map(lambda signer: munge("/usr/bin/unmunge", credentials[signer]), signers))
    return {signer: done.stderr.strip() for signer, done in zip(signers, answers, strict=True) if done.returncode}
