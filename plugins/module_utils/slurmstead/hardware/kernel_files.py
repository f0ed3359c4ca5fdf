# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Readers for files of the kernel. Functions take the root of a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def text(path: Path) -> str | None:
    """Return a small file without white space around it; None if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def cgroup(root: Path) -> dict[str, Any]:
    """Return the mode, `v1`, `v2` or `hybrid`, and the controllers that can be used, sorted."""
    mounts = (line.split() for line in (text(root / "proc/self/mounts") or "").splitlines())
    types = {fields[2] for fields in mounts if len(fields) > 2 and f"{fields[1]}/".startswith("/sys/fs/cgroup/")}
    modes = {(True, False): "v1", (False, True): "v2", (True, True): "hybrid"}
    mode = modes.get(("cgroup" in types, "cgroup2" in types))
    if mode == "v2":
        controllers = (text(root / "sys/fs/cgroup/cgroup.controllers") or "").split()
    else:
        # subsys_name hierarchy num_cgroups enabled
        lines = [line.split() for line in (text(root / "proc/cgroups") or "").splitlines()]
        controllers = [fields[0] for fields in lines if fields[-1:] == ["1"] and not fields[0].startswith("#")]
    return {"mode": mode, "controllers": sorted(controllers)}
