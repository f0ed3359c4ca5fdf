# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The configuration that Slurm's daemons use, and the files that they read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.change.sets import ETC, Store
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.answers import LOADED, has_loaded, read_settings

FETCHED = Path("/run/slurm/conf")
"""Directory of the files that a configless slurmd has fetched, where clients find them (slurm.conf(5))."""

LEFT_OUT = frozenset({"plugstack.conf"})
"""Files from Debian's packages."""


def look(units: Collection[str]) -> dict[str, Any]:
    """Return the Slurm configuration on this machine; on control also slurmctld's view of the cluster."""
    if not {"slurmctld", "slurmd"} & set(units):
        return {}
    found: dict[str, Any] = {"files": files(ETC), "fetched": files(FETCHED), **answer()}
    if "slurmctld" in units:
        # Imported only on control, because compiling it on a slow CPU takes as long as the rest.
        from ansible.module_utils.slurmstead.doctor.facts import control

        found |= control.look(found, Store(ETC))
    return found


def files(directory: Path) -> dict[str, str]:
    """Return the text of each configuration file in a directory."""
    return {name: text for name, text in Store(directory).seen().items() if name not in LEFT_OUT}


def answer() -> dict[str, Any]:
    """Return version and `match` of slurmctld, or the `error` if it does not answer this machine.

    `match` says whether slurmctld has loaded the slurm.conf found here; None if unknown.
    """
    code, out, err = run("scontrol", "show", "config", seconds=15)
    if code:
        return {"error": (err or out).strip().partition("\n")[0] or f"scontrol exited with {code}"}
    shown = read_settings(out)
    match = has_loaded(shown.get("HASH_VAL", ""), Store(ETC).recall(LOADED).get("hashes", ""))
    return {"error": "", "version": shown.get("SLURM_VERSION", ""), "match": match}
