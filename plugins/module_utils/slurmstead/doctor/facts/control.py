# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""slurmctld's view of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.slurmstead.change.sets import Store
from ansible.module_utils.slurmstead.change.workers import Workers
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.doctor.facts import jobs
from ansible.module_utils.slurmstead.gate import host as gate_host
from ansible.module_utils.slurmstead.slurm.daemons import Slurm


def look(found: Mapping[str, Any], store: Store) -> dict[str, Any]:
    """Return the directories that slurmctld cannot write to and, if it answers, its view of the cluster.

    :param found: the facts that every machine has
    """
    directories = gate_host.directories(conf_model.read(found["files"].get("slurm.conf", "")))
    unwritable = [why for _, why, _ in directories]
    if found["error"]:
        return {"unwritable": unwritable}
    slurm = Slurm()
    shown = {name: node(fields) for name, fields in slurm.nodes().items()}
    return {
        "unwritable": unwritable,
        # A slurmctld without nodes does not start.
        "error": "" if shown else "it reports no nodes",
        "nodes": shown,
        "partitions": slurm.partitions(),
        **jobs.known(),
        "restarts": sorted(Workers(store, slurm).waiting()),
    }


def node(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the necessary fields of a node; its reason includes author and time.

    >>> fields = {"NodeName": "n1", "State": "IDLE+DRAIN", "CPUTot": "4", "Reason": "fan", "ReasonSetByUser": "root"}
    >>> node({**fields, "ReasonChangedAt": "2026-11-20T09:00:00"})
    {'NodeName': 'n1', 'State': 'IDLE+DRAIN', 'Reason': 'fan [root@2026-11-20T09:00:00]'}
    """
    wanted = {key: fields[key] for key in ("NodeName", "State", "Version", "SlurmdStartTime") if key in fields}
    by = fields["ReasonSetByUser"]
    return {**wanted, "Reason": fields["Reason"] + (f" [{by}@{fields['ReasonChangedAt']}]" if by else "")}
