# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What slurmctld knows of the cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.change.workers import Workers
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.gate import host as gate_host
from ansible.module_utils.slurmstead.reach.commands import run
from ansible.module_utils.slurmstead.slurm.answers import read_node
from ansible.module_utils.slurmstead.slurm.daemons import Slurm


def look(found: Mapping[str, Any], store: Store) -> dict[str, Any]:
    """Return the directories that slurmctld cannot write into; of one that answers also what it knows of the cluster.

    :param found: what every machine has
    """
    directories = gate_host.directories(conf_model.read(found["files"].get("slurm.conf", "")))
    unwritable = [why for _, why, _ in directories]
    if found["error"]:
        return {"unwritable": unwritable}
    shown = nodes()
    return {
        "unwritable": unwritable,
        # A slurmctld without nodes does not start.
        "error": "" if shown else "it shows no nodes",
        "nodes": shown,
        "partitions": partitions(),
        "restarts": sorted(Workers(store, Slurm()).waiting()),
    }


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
