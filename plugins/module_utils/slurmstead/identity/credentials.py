# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Signs MUNGE credentials and reads them, as a user who owns nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

SECONDS = 15
USER: str | None = "nobody"
GROUP: str | None = "nogroup"


def munge(command: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run munge or unmunge as an ordinary user, with `text` as its input."""
    return subprocess.run(
        command.split(), input=text, capture_output=True, text=True, timeout=SECONDS, user=USER, group=GROUP
    )


def sign() -> subprocess.CompletedProcess[str]:
    """Sign a credential, which is then the output."""
    return munge("/usr/bin/munge --no-input", "")


def is_deaf() -> bool:
    """Say whether this node's munged cannot be asked. It may run so: Debian's package takes away its socket."""
    try:
        return sign().returncode != 0
    except subprocess.TimeoutExpired:
        return False


def refused(credentials: Mapping[str, str]) -> dict[str, str]:
    """Return what unmunge says of those credentials that it does not believe, by the name of who signed them."""
    signers = sorted(credentials)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        answers = list(pool.map(lambda signer: munge("/usr/bin/unmunge", credentials[signer]), signers))
    return {signer: done.stderr.strip() for signer, done in zip(signers, answers, strict=True) if done.returncode}
