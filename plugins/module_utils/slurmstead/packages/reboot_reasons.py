# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Reasons to reboot a machine so that it uses the installed software."""

from __future__ import annotations

import re
from pathlib import Path

LIBC = re.compile(r" (/\S*/(?:libc\.so\.6|libc-2\S*|ld-linux\S*|ld-2\S*)) \(deleted\)$", re.MULTILINE)
"""A replaced C library in /proc/PID/maps of a process that still uses it."""


def reboot_reasons(root: Path = Path("/")) -> list[str]:
    """Return why a machine needs a reboot, as text."""
    booted = _booted(root)
    # The change time is the time of installation: the modification time comes from the package.
    newer = [path.name for path in sorted((root / "boot").glob("vmlinuz-*")) if path.stat().st_ctime > booted]
    reasons = [f"{name.replace('vmlinuz-', 'kernel ')} was installed after it booted" for name in newer if booted]
    if LIBC.search(_text(root / "proc" / "1" / "maps")):
        reasons.append("the C library was replaced after it booted")
    if not reasons and (root / "run" / "reboot-required").exists():
        packages = sorted(set(_text(root / "run" / "reboot-required.pkgs").split()))
        reasons.append(f"requested by {', '.join(packages) or 'a package'}")
    return reasons


def _booted(root: Path) -> float:
    found = re.search(r"^btime (\d+)$", _text(root / "proc" / "stat"), re.MULTILINE)
    return float(found[1]) if found else 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
