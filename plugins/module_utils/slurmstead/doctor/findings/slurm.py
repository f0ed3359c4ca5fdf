# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Do slurmctld and slurmd use the inventory's configuration, and does slurmctld use all nodes?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible.module_utils.slurmstead.change.classify import classify
from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding, both
from ansible.module_utils.slurmstead.slurm.answers import REASON, flags
from ansible.module_utils.slurmstead.slurm.jobs import State
from ansible.module_utils.slurmstead.workers.reasons import MISSED, is_of_health_check, is_taken_back

OUT_OF_SERVICE = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "INVAL", "ERROR", "UNKNOWN", "FUTURE")
"""Prefixes of states in which a node accepts no jobs and does not recover by itself."""

TRUST = ("key", "munge", "service munge", "clock")
"""Findings that explain failed authentication between machines."""

SHOWN = 3
"""Maximum number of differences that a finding lists."""


def answers(cluster: Cluster) -> Iterator[Finding]:
    """slurmctld answers everywhere."""
    for name, facts in cluster.machines.items():
        error = facts["slurm"].get("error")
        if error:
            advice = f"see `journalctl -u slurmctld` on {cluster.control}"
            causes = both([name, cluster.control], "ssh", "address", "service slurmctld", *TRUST, "resolution")
            above = both([cluster.control], "answer") if name != cluster.control else ()
            # Clients use the files that slurmd has fetched.
            below = () if facts["slurm"]["files"] or facts["slurm"]["fetched"] else both([name], "service slurmd")
            yield Finding(name, "answer", f"slurmctld does not answer it: {error}", advice, causes + above + below)


def places(cluster: Cluster) -> Iterator[Finding]:
    """slurmctld can write its state and its log; if not, a running one continues, but loses its state when it ends."""
    for seen in cluster.brain.get("slurm", {}).get("unwritable", []):
        yield Finding(cluster.control, "state", seen, "run `stead up --tags slurm`, or correct its owner")


def published(cluster: Cluster) -> Iterator[Finding]:
    """The files on control are those of the inventory."""
    slurm = cluster.brain.get("slurm")
    if slurm is None or not cluster.files:
        return
    expected = conf_model.read(cluster.files["slurm.conf"]).nodes
    unknown = sorted(name for name, _ in cluster.running("slurmd") if name not in expected)
    if unknown:
        seen = f"slurm.conf was not compared: this computer does not have the measured hardware of {', '.join(unknown)}"
        yield Finding(
            cluster.control,
            "hardware",
            seen,
            "run `stead up` from this computer, or use the inventory of the one that does",
        )
        return
    differences = _differences(slurm["files"], cluster.files, slurm.get("version", ""))
    if differences:
        advice = "run `stead up` to restore it, or add what should stay to slurm_config"
        yield Finding(cluster.control, "configuration", f"/etc/slurm differs from the inventory: {differences}", advice)


def _differences(found: Mapping[str, str], wanted: Mapping[str, str], version: str) -> str:
    """Return how files that are found differ from those that are wanted, in one line; empty if they mean the same."""
    new = {name: text for name, text in wanted.items() if text}
    old = {name: found.get(name, "") for name in new}
    if old == new:
        return ""
    lines = [change.difference for change in classify(old, new, version or "0", State()).changes]
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "; ".join(lines[:SHOWN]) + more


def loaded(cluster: Cluster) -> Iterator[Finding]:
    """slurmctld has loaded the current slurm.conf."""
    if cluster.brain.get("slurm", {}).get("match") is False:
        seen = "slurmctld has not loaded the current /etc/slurm/slurm.conf"
        yield Finding(cluster.control, "loaded", seen, "run `stead up --tags slurm`, which checks the file first")


def fetched(cluster: Cluster) -> Iterator[Finding]:
    """Workers use control's files, and have none of their own."""
    published = cluster.brain.get("slurm", {}).get("files", {})
    # Most workers have the same files, which grow with the number of workers.
    compared: dict[tuple[tuple[str, str], ...], str] = {}
    for name, facts in cluster.running("slurmd"):
        if name == cluster.control:
            continue
        own, there = sorted(facts["slurm"]["files"]), facts["slurm"]["fetched"]
        texts = tuple(sorted(there.items()))
        if texts not in compared:
            served = published.keys() & (there.keys() | cluster.files.keys())
            compared[texts] = _differences(there, {key: published[key] for key in served}, "")
        differences = compared[texts]
        if own:
            seen = f"/etc/slurm has its own {', '.join(own)}, which hides that of {cluster.control}"
            yield Finding(name, "own", seen, "remove it, and `systemctl restart slurmd`")
        elif differences or not there:
            what = f"differs from that of {cluster.control}: {differences}" if there else "was not fetched"
            advice = "`systemctl restart slurmd`; jobs go on"
            causes = both([cluster.control], "configuration", "loaded") + both([name], "service slurmd")
            yield Finding(name, "fetched", f"its configuration {what}", advice, causes)


def restarts(cluster: Cluster) -> Iterator[Finding]:
    """Every slurmd has been restarted since the last change that requires a restart."""
    for name in cluster.brain.get("slurm", {}).get("restarts", []):
        if not cluster.sleeps(name):
            seen = "slurmd still needs a restart for the changed configuration"
            yield Finding(name, "restart", seen, "run `stead up`; jobs go on", both([name], "ssh", "service slurmd"))


def nodes(cluster: Cluster) -> Iterator[Finding]:
    """slurmctld uses every worker."""
    known = cluster.brain.get("slurm", {}).get("nodes")
    if not known:
        return
    workers = [name for name, _ in cluster.running("slurmd")]
    for name in [*workers, *(name for name in cluster.silent if name in known)]:
        if name not in known:
            causes = both([cluster.control], "configuration", "loaded", "hardware")
            yield Finding(name, "node", "slurmctld does not know it", "run `stead up`", causes)
            continue
        state, reason = known[name]["State"], known[name].get("Reason", "")
        words = flags(known[name]) - ({"NOT_RESPONDING"} if cluster.sleeps(name) else set())
        if not any(word.startswith(OUT_OF_SERVICE) for word in words):
            continue
        seen = f"slurmctld gives it no jobs: {state}{f', {reason}' if reason else ''}"
        signed = REASON.match(reason)
        if is_of_health_check(reason):
            advice = "fix that; the node is then resumed within a minute"
        elif reason.startswith(MISSED):
            advice = f"`scripts/stead power on {name}`, or run those commands with --wake"
        elif signed and "DRAIN" in words and is_taken_back(signed[1], signed[2]):
            advice = "its health check resumes it once the cause is gone; see `journalctl -t slurmstead-health` there"
        else:
            advice = f"fix that, then `scontrol update nodename={name} state=resume`"
        # Report a drain in any case: the administrator who set it wants to see it.
        causes = both([name], "ssh", "address", "service slurmd") + both([name, cluster.control], *TRUST)
        causes = () if "DRAIN" in words else causes
        yield Finding(name, "node", seen, advice, causes)


def partitions(cluster: Cluster) -> Iterator[Finding]:
    """Partitions have the states that the inventory declares."""
    known = cluster.brain.get("slurm", {}).get("partitions", {})
    wanted = conf_model.read(cluster.files.get("slurm.conf", "")).partitions
    for name, state in known.items():
        section = wanted.get(name, {})
        expected = section["state"].value.upper() if "state" in section else "UP"
        if state.upper() != expected:
            seen = f"the partition {name} is {state}, but {expected} in the inventory"
            yield Finding(cluster.control, "partition", seen, f"`scontrol update partition={name} state={expected}`")
