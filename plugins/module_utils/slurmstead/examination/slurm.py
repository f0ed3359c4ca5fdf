# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What the daemons of Slurm have, and the files from which they have it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead import conf_model, gate_host
from ansible.module_utils.slurmstead.config_sets import Store
from ansible.module_utils.slurmstead.slurm_daemons import LOADED, Slurm, has_loaded, read_node, read_settings, run
from ansible.module_utils.slurmstead.slurm_workers import Workers

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
        model = conf_model.read(found["files"].get("slurm.conf", ""))
        found["unwritable"] = [why for _, why, _ in gate_host.directories(model)]
    if "slurmctld" in units and not found["error"]:
        found["nodes"] = nodes()
        # A slurmctld without nodes does not start.
        found["error"] = "" if found["nodes"] else "it shows no nodes"
        found["partitions"] = partitions()
        found["restarts"] = sorted(Workers(Store(OWN), Slurm()).waiting())
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


def nodes() -> dict[str, Mapping[str, str]]:
    """Return state, version and reason of each node that slurmctld knows, by name."""
    _, out, _ = run("scontrol", "--oneliner", "--all", "show", "node")
    return {found["NodeName"]: found for found in map(node, out.splitlines()) if "NodeName" in found}


def node(line: str) -> dict[str, str]:
    """Return what is needed of a line; nothing of one that is no node's. Free text stands behind `Reason=`.

    >>> node("NodeName=n1 Version=22.05.8 State=IDLE+DRAIN Reason=fan [root@2026-11-20T09:00:00]")["Reason"]
    'fan [root@2026-11-20T09:00:00]'
    """
    fields, reason = read_node(line)
    wanted: dict[str, str] = {
        key: fields[key] for key in ("NodeName", "State", "Version", "SlurmdStartTime") if key in fields
    }
    return {**wanted, "Reason": re.sub(r" Comment=.*", "", reason).strip()} if wanted else {}


def partitions() -> dict[str, str]:
    """Return the state of each partition by name."""
    _, out, _ = run("scontrol", "--oneliner", "--all", "show", "partition")
    rows = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in out.splitlines())
    return {row["PartitionName"]: row.get("State", "") for row in rows if "PartitionName" in row}
