# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The change of a file, as modules show it with `--diff`."""

from __future__ import annotations

import difflib
from pathlib import Path


def text(path: str | Path, old: str, new: str) -> str:
    r"""Return the change line by line. Each line has its end, because Ansible prints parts without one in between.

    >>> text("/etc/a", "one\n", "two")
    '--- /etc/a\n+++ /etc/a\n@@ -1 +1 @@\n-one\n+two\n'
    """
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(path), str(path), lineterm="")
    return "".join(f"{line}\n" for line in lines)
