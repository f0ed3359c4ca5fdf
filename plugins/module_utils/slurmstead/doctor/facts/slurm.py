# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What the daemons of Slurm have, and the files from which they have it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.answers import LOADED, has_loaded, read_settings

OWN = Path("/etc/slurm")
FETCHED = Path("/run/slurm/conf")
"""Where clients find what a slurmd without files of its own has fetched (slurm.conf(5))."""

LEFT_OUT = frozenset({"plugstack.conf", "slurmdbd.conf"})
"""Files that Debian's packages bring, and that of another daemon, which has a password in it."""


def look(units: Collection[str]) -> dict[str, Any]:
    """Return what this machine has of the cluster's configuration; on control also what slurmctld knows."""
    if not {"slurmctld", "slurmd"} & set(units):
        return {}
    found: dict[str, Any] = {"files": files(OWN), "fetched": files(FETCHED), **answer()}
    if "slurmctld" in units:
        # Only control compiles it, which takes a slow CPU as long as a look.
        from ansible.module_utils.slurmstead.doctor.facts import control

        found |= control.look(found, Store(OWN))
    return found


def files(directory: Path) -> dict[str, str]:
    """Return the text of each configuration file in a directory."""
    return {name: text for name, text in Store(directory).seen().items() if name not in LEFT_OUT}


def answer() -> dict[str, Any]:
    """Return version and `match` of slurmctld, or the `error` with which it cannot be asked from here.

    `match` says whether it has loaded what the slurm.conf that is found here says; None where it does not say.
    """
    code, out, err = run("scontrol", "show", "config", seconds=15)
    if code:
        return {"error": (err or out).strip().partition("\n")[0] or f"scontrol ended with status {code}"}
    shown = read_settings(out)
    match = has_loaded(shown.get("HASH_VAL", ""), Store(OWN).recall(LOADED).get("hashes", ""))
    return {"error": "", "version": shown.get("SLURM_VERSION", ""), "match": match}
