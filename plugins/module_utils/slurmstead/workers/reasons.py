# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Why a worker is drained, and by whom: every reason that this project gives to Slurm, and how Slurm's own are known.

A drain is undone only by its author. An administrator's drain matches nothing here, so it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible.module_utils.slurmstead.slurm.answers import flags, seconds

Fields = Mapping[str, str]
"""The fields of a node as Slurm.nodes() returns them."""

HEALTH = "slurmstead: "
"""How a reason begins that the health check gives, and that it takes back when nothing is wrong any more.

roles/slurmd/files/health_check.py, which runs on its own, has the same prefix.
"""

REBOOT = "stead reboot"
UPGRADE = "stead upgrade"
CHANGE = "waits for a change of the configuration (slurm_when_idle)"
OPERATIONS = {
    "remove-node": "stead remove-node",
    "replace-node": "stead replace-node",
    # The worker cannot talk to slurmctld before it has the key; then its health check resumes it.
    "rotate-key": f"{HEALTH}has not got the new MUNGE key; run site.yml when it is back",
    "shutdown": "stead shutdown",
}
"""The reason of each operation for which a playbook drains workers."""

GRES, DUPLICATE = "gres/", "Duplicate jobid"
SIGNERS = {GRES: ("slurm",), DUPLICATE: ("slurm", "root")}
"""How reasons begin with which Slurm drains a node for good and which a new start of slurmd settles, and in whose name.

slurmctld of 22.05 drains a node that is declared to have GRES before its slurmd can have read so; 24.11 does not. After
a kill, slurmctld gives numbers of the last seconds again (SAVE_MAX_WAIT in src/slurmctld/state_save.c), and drains a
node that still has a job of the same number (src/slurmctld/agent.c), in 22.05.8 in the name of slurmd's user.
"""

OUTDATED, CURRENT = "outdated", "current"
"""A drain from before the start of slurmd, and one that slurmd may still deserve."""

REBOOT_MARK = " : reboot "
"""Before what slurmctld adds to the reason of a drained node (node_mgr.c: set_node_reboot_reason)."""


def is_drained(shown: Fields) -> bool:
    """Say whether a node is drained or draining."""
    return "DRAIN" in flags(shown)


def drained(nodes: Mapping[str, Fields], names: Iterable[str], reason: str | None = None) -> list[str]:
    """Return those of the workers that are drained, all or those with a reason.

    >>> drained({"n1": {"State": "IDLE+DRAIN", "Reason": "fan"}, "n2": {"State": "IDLE", "Reason": ""}}, ["n1", "n2"])
    ['n1']
    """
    shown = {name: nodes[name] for name in names if name in nodes}
    return sorted(name for name in shown if is_drained(shown[name]) and reason in (None, shown[name]["Reason"]))


def is_of_health_check(reason: str) -> bool:
    """Say whether a worker's health check resumes it by itself.

    >>> is_of_health_check("slurmstead: disk / is full"), is_of_health_check("fan")
    (True, False)
    """
    return reason.startswith(HEALTH)


def unwell(shown: Fields) -> bool:
    """Say whether the health check of a worker has drained it."""
    return is_drained(shown) and is_of_health_check(shown["Reason"])


def before_reboot(shown: Fields) -> str | None:
    """Return why a node that reboots was drained before; None if it was not.

    >>> before_reboot({"State": "DOWN+DRAIN+REBOOT_ISSUED", "Reason": "fan : reboot issued"})
    'fan'
    """
    if not is_drained(shown) or shown["Reason"].startswith(REBOOT):
        return None
    return shown["Reason"].partition(REBOOT_MARK)[0]


def drained_by_slurm(shown: Fields) -> str:
    """Return whether Slurm drained a node for what slurmd tells at its start, and if so whether it was started since.

    >>> fields = {"State": "IDLE+DRAIN", "Reason": "gres/core count reported lower than configured (0 < 4)"}
    >>> signed = {**fields, "ReasonSetByUser": "slurm", "ReasonChangedAt": "2026-11-20T09:00:00"}
    >>> drained_by_slurm({**signed, "SlurmdStartTime": "2026-11-20T09:00:12"}) == OUTDATED
    True
    """
    if not shown or not is_drained(shown):
        return ""
    signers = (signers for start, signers in SIGNERS.items() if shown["Reason"].startswith(start))
    if shown["ReasonSetByUser"] not in next(signers, ()):
        return ""
    started = seconds(shown.get("SlurmdStartTime", ""))
    return OUTDATED if started >= seconds(shown["ReasonChangedAt"]) else CURRENT


def is_duplicate(shown: Fields) -> bool:
    """Say whether slurmctld drained a node because it has a job whose number was given twice."""
    return drained_by_slurm(shown) != "" and shown["Reason"].startswith(DUPLICATE)
