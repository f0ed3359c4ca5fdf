# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Why a machine has to be rebooted before what is installed on it is in use."""

from __future__ import annotations

import re
from pathlib import Path

LIBC = re.compile(r" (/\S*/(?:libc\.so\.6|libc-2\S*|ld-linux\S*|ld-2\S*)) \(deleted\)$", re.MULTILINE)
"""The C library in /proc/PID/maps of a process that still has the one before."""


def reboot_reasons(root: Path = Path("/")) -> list[str]:
    """Return why a machine has to be rebooted, in words."""
    booted = _booted(root)
    # When a file was put there: its own time is that of its package.
    newer = [path.name for path in sorted((root / "boot").glob("vmlinuz-*")) if path.stat().st_ctime > booted]
    reasons = [f"{name.replace('vmlinuz-', 'kernel ')} was installed after it booted" for name in newer if booted]
    if LIBC.search(_text(root / "proc" / "1" / "maps")):
        reasons.append("the C library was replaced after it booted")
    if not reasons and (root / "run" / "reboot-required").exists():
        packages = sorted(set(_text(root / "run" / "reboot-required.pkgs").split()))
        reasons.append(f"{', '.join(packages) or 'a package'} wants it")
    return reasons


def _booted(root: Path) -> float:
    found = re.search(r"^btime (\d+)$", _text(root / "proc" / "stat"), re.MULTILINE)
    return float(found[1]) if found else 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
