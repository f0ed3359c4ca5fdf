# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Reasons of drains and their authors: every reason that Slurmstead sets, and how to recognise Slurm's own.

Only its author undoes a drain. An administrator's drain matches nothing here, so it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible.module_utils.slurmstead.slurm.answers import flags, seconds

Fields = Mapping[str, str]
"""The fields of a node as Slurm.nodes() returns them."""

HEALTH = "slurmstead: "
"""Prefix of the health check's reasons; it removes such a drain when all its checks pass again.

roles/slurmd/files/health_check.py, a standalone program, has the same prefix.
"""

TAKEN_BACK = {
    "Low RealMemory": ("slurm",),
    "Low CPUs": ("slurm",),
    "Low socket*core*thread count": ("slurm",),
    "Low TmpDisk": ("slurm",),
    "SlurmdSpoolDir is full": ("root", "slurm"),
    "Kill task failed": ("root", "slurm"),
    "Duplicate jobid": ("root", "slurm"),
    "Prolog error": ("slurm",),
    "Prolog/Epilog failure": ("slurm",),
    "Epilog error": ("slurm",),
    "batch job complete failure": ("slurm",),
}
"""Prefixes and authors of Slurm's permanent drains that the health check takes back once their cause is gone.

health_check.py has the same list (VERDICTS), with the sources in Slurm, and docs/health-checks.md explains it.
"""

REBOOT = "stead reboot"
UPGRADE = "stead upgrade"
CHANGE = "waits for a change of the configuration (slurm_when_idle)"
OPERATIONS = {
    "move-share": "stead move-share",
    "remove-node": "stead remove-node",
    "replace-node": "stead replace-node",
    # The worker cannot communicate with slurmctld until it has the key; then its health check resumes it.
    "rotate-key": f"{HEALTH}has not got the new MUNGE key; run site.yml when it is back",
    "shutdown": "stead shutdown",
}
"""The reason of each operation for which a playbook drains workers."""

DOES_NOT_WAKE = f"{HEALTH}does not wake"
"""The beginning of the reason of a machine that power saving could not wake."""

NOT_WOKEN = "ResumeTimeout reached"
"""slurmctld's reason of a node that did not wake (src/slurmctld/power_save.c)."""

FORGOTTEN = f"{HEALTH}is off, which slurmctld had forgotten"
"""The reason of a machine for the moment in which slurmctld is told that it sleeps."""

MISSED = "missed while asleep: "
"""Beginning of the reason of a machine that slept during commands; their names follow. No health check resumes it."""

GRES, DUPLICATE = "gres/", "Duplicate jobid"
SIGNERS = {GRES: ("slurm",), DUPLICATE: ("slurm", "root")}
"""Prefixes and authors of Slurm's permanent drains whose cause a restart of slurmd removes.

slurmctld of 22.05 drains a node that gets GRES before its slurmd can have read the new configuration; 24.11 does not.
After a kill, slurmctld reuses the job numbers of the last seconds (SAVE_MAX_WAIT in src/slurmctld/state_save.c), and
drains a node that still has a job with the same number (src/slurmctld/agent.c), in 22.05.8 in the name of slurmd's
user.
"""

OUTDATED, CURRENT = "outdated", "current"
"""A drain from before the start of slurmd, and a drain that may still be justified."""

REBOOT_MARK = " : reboot "
"""Separator before slurmctld's addition to the reason of a drained node (node_mgr.c: set_node_reboot_reason)."""

REBOOT_ISSUED = "reboot issued"
"""What 22.05 sets instead of the reason of a drained node, if that has this from an earlier reboot."""


def is_drained(shown: Fields) -> bool:
    """Say whether a node is drained or draining."""
    return "DRAIN" in flags(shown)


def is_put_down(shown: Fields) -> bool:
    """Say whether a person put a node down with a reason. `scontrol update state=resume` would undo that.

    >>> is_put_down({"State": "DOWN", "Reason": "bad DIMM", "ReasonSetByUser": "root"})
    True
    >>> is_put_down({"State": "DOWN*", "Reason": "Not responding", "ReasonSetByUser": "slurm"})
    False
    """
    reason = shown.get("Reason", "")
    is_ours = reason.startswith((HEALTH, "stead "))
    return "DOWN" in flags(shown) and bool(reason) and not is_ours and shown.get("ReasonSetByUser") != "slurm"


def did_not_wake(shown: Fields) -> bool:
    """Say whether slurmctld has given up waking a node. 24.11 adds that to the reason that the node had.

    >>> did_not_wake({"State": "DOWN+POWERED_DOWN", "Reason": f"fan : {NOT_WOKEN}", "ReasonSetByUser": "slurm"})
    True
    >>> did_not_wake({"State": "IDLE+POWERED_DOWN", "Reason": NOT_WOKEN, "ReasonSetByUser": "slurm"})
    False
    """
    signed = shown.get("Reason", "").endswith(NOT_WOKEN) and shown.get("ReasonSetByUser") == "slurm"
    return signed and "DOWN" in flags(shown) and not is_drained(shown)


def is_left_alone(shown: Fields) -> bool:
    """Say whether a node is drained, or a person put it down: no command drains it, and none resumes it."""
    return is_drained(shown) or is_put_down(shown)


def drained(nodes: Mapping[str, Fields], names: Iterable[str], reason: str | None = None) -> list[str]:
    """Return the workers that are drained, all or only those with a given reason.

    >>> drained({"n1": {"State": "IDLE+DRAIN", "Reason": "fan"}, "n2": {"State": "IDLE", "Reason": ""}}, ["n1", "n2"])
    ['n1']
    """
    shown = {name: nodes[name] for name in names if name in nodes}
    return sorted(name for name in shown if is_drained(shown[name]) and reason in (None, shown[name]["Reason"]))


def is_of_health_check(reason: str) -> bool:
    """Say whether the worker's health check itself will resume it.

    >>> is_of_health_check("slurmstead: disk / is full"), is_of_health_check("fan")
    (True, False)
    """
    return reason.startswith(HEALTH)


def is_taken_back(reason: str, author: str) -> bool:
    """Say whether the health check will resume a node that was drained so, by itself or by Slurm.

    >>> is_taken_back("Kill task failed", "root"), is_taken_back("Prolog error", "ann")
    (True, False)
    """
    authors = (authors for start, authors in TAKEN_BACK.items() if reason.startswith(start))
    return is_of_health_check(reason) or author in next(authors, ())


def is_temporary(reason: str, author: str) -> bool:
    """Say whether the health check or `up` will resume a node that was drained so.

    >>> is_temporary("gres/gpu count reported lower than configured (0 < 4)", "slurm"), is_temporary("fan", "slurm")
    (True, False)
    """
    return is_taken_back(reason, author) or author in _signers(reason)


def missing(operations: Iterable[str]) -> str:
    """Return the reason of a machine that slept during these commands.

    >>> missing(["up", "upgrade"])
    'missed while asleep: up, upgrade'
    """
    return MISSED + ", ".join(operations)


def missed(shown: Fields) -> tuple[str, ...]:
    """Return the commands during which a drained machine slept.

    >>> missed({"State": "IDLE+DRAIN+POWERED_DOWN", "Reason": "missed while asleep: up, upgrade"})
    ('up', 'upgrade')
    >>> missed({"State": "IDLE+DRAIN", "Reason": "fan"})
    ()
    """
    if not shown or not is_drained(shown) or not shown["Reason"].startswith(MISSED):
        return ()
    return tuple(shown["Reason"].removeprefix(MISSED).split(", "))


def unwell(shown: Fields) -> bool:
    """Say whether the health check of a worker has drained it."""
    return is_drained(shown) and is_of_health_check(shown["Reason"])


def before_reboot(shown: Fields) -> str | None:
    """Return the reason with which a rebooting node was drained before; None if it was not.

    >>> before_reboot({"State": "DOWN+DRAIN+REBOOT_ISSUED", "Reason": "fan : reboot issued"})
    'fan'
    """
    if not is_drained(shown) or shown["Reason"].startswith(REBOOT):
        return None
    return shown["Reason"].partition(REBOOT_MARK)[0]


def author_before_reboot(shown: Fields) -> str:
    """Return who gave the reason of a node; empty if its reboot is issued, because slurmctld has signed it since.

    >>> author_before_reboot({"State": "IDLE+DRAIN", "Reason": "fan", "ReasonSetByUser": "ann"})
    'ann'
    """
    is_issued = "REBOOT_ISSUED" in flags(shown) and REBOOT_MARK in shown["Reason"]
    return "" if is_issued else shown.get("ReasonSetByUser", "")


def _signers(reason: str) -> tuple[str, ...]:
    return next((signers for start, signers in SIGNERS.items() if reason.startswith(start)), ())


def drained_by_slurm(shown: Fields) -> str:
    """Return whether Slurm drained a node for a cause that a restart of slurmd removes, and whether that happened.

    >>> fields = {"State": "IDLE+DRAIN", "Reason": "gres/core count reported lower than configured (0 < 4)"}
    >>> signed = {**fields, "ReasonSetByUser": "slurm", "ReasonChangedAt": "2026-11-20T09:00:00"}
    >>> drained_by_slurm({**signed, "SlurmdStartTime": "2026-11-20T09:00:12"}) == OUTDATED
    True
    """
    if not shown or not is_drained(shown):
        return ""
    if shown["ReasonSetByUser"] not in _signers(shown["Reason"]):
        return ""
    started = seconds(shown.get("SlurmdStartTime", ""))
    return OUTDATED if started >= seconds(shown["ReasonChangedAt"]) else CURRENT


def is_duplicate(shown: Fields) -> bool:
    """Say whether slurmctld drained a node because of a duplicate job number."""
    return drained_by_slurm(shown) != "" and shown["Reason"].startswith(DUPLICATE)
