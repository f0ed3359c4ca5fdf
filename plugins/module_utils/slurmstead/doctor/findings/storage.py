# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Are the share, scratch and the system disk usable, and can Slurm enforce the limits of jobs?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.slurmstead.conf import model as conf_model
from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding, both

PART = 20
"""Space is short if less than one part in this number is free, and less than MUCH."""

MUCH = 5120
"""MiB."""

OWN = ("/", "/var")
"""Directories of the server's own files, among them slurmctld's state and the MUNGE key."""

SWAPPED = 64
"""MiB of swap in use that are worth a finding; a few that were never needed again do no harm."""

CONTROLLERS = {"v2": ("cpu", "cpuset", "memory"), "v1": ("cpuset", "freezer", "memory")}
"""Control group controllers that Slurm needs to enforce jobs' limits."""


def mounts(cluster: Cluster) -> Iterator[Finding]:
    """Each directory has its file system mounted, and answers."""
    for name, facts in cluster.machines.items():
        readonly: set[str] = set()
        for path, must_be_mounted in facts["wanted"]["paths"].items():
            state = facts["paths"][path]
            if state["error"]:
                servers = _servers(cluster, name, state) if must_be_mounted else []
                asked = f"; is nfs-server up on {' and '.join(servers)}?" if servers else ""
                advice = f"see `findmnt {path}` and `journalctl -b`{asked}"
                causes = both(servers, "ssh", "service nfs-server")
                yield Finding(name, "mount", f"{path} does not answer: {state['error']}", advice, causes)
            elif must_be_mounted and not state["source"]:
                yield Finding(name, "mount", f"nothing is mounted on {path}", "run `stead up`, and see `journalctl -b`")
            elif state.get("readonly") and state["id"] not in readonly:
                readonly.add(state["id"])
                advice = "see `dmesg` for disk errors, then remount it"
                yield Finding(name, "mount", f"{path} is read-only", advice)


def _servers(cluster: Cluster, name: str, state: Mapping[str, Any]) -> list[str]:
    """Return the machines that may serve a network file system; empty for a local one."""
    source = str(state["source"] or "")
    if source and not str(state["type"]).startswith("nfs"):
        return []
    silent = [other for other in cluster.silent if source.startswith(f"{cluster.addresses.get(other)}:")]
    return [other for other, _ in cluster.running("nfs-server") if other != name] + silent


def separation(cluster: Cluster) -> Iterator[Finding]:
    """The share is not on the file system of the server's own files."""
    for name, facts in cluster.running("nfs-server"):
        own = {facts["paths"][path].get("id") for path in OWN if path in facts["paths"]}
        for path, must_be_mounted in facts["wanted"]["paths"].items():
            state = facts["paths"][path]
            if must_be_mounted and state["source"] and not state["error"] and state["id"] in own:
                seen = f"{path} is a directory of the server's own disk, which users of the share can fill"
                yield Finding(name, "separation", seen, "move it to a file system of its own, see docs/share.md")
                break


def space(cluster: Cluster) -> Iterator[Finding]:
    """No file system is nearly full."""
    for name, facts in cluster.machines.items():
        told: set[str] = set()
        for path, state in facts["paths"].items():
            # The share is reported once, on its server; a file system with several of the directories also once.
            if state["error"] or str(state.get("type", "")).startswith("nfs") or state["id"] in told:
                continue
            told.add(state["id"])
            if state["free"] * PART < state["size"] and state["free"] < MUCH:
                seen = f"{path} is nearly full: {state['free']} of {state['size']} MiB are free"
                yield Finding(name, "space", seen, f"`du -xh -d2 {path} | sort -h` shows what uses it")
            elif state["free_inodes"] * PART < state["inodes"]:
                seen = f"{path} is nearly out of inodes: {state['free_inodes']} of {state['inodes']}"
                yield Finding(name, "space", seen, "remove small files")


def controllers(cluster: Cluster) -> Iterator[Finding]:
    """The kernel provides the control groups that slurmd needs."""
    settings = conf_model.read(cluster.files.get("slurm.conf", "")).settings.values()
    if settings and not any("/cgroup" in pair.value for pair in settings):
        return
    for name, facts in cluster.running("slurmd"):
        mode = facts["cgroup"]["mode"]
        missing = sorted(set(CONTROLLERS.get(mode, ())) - set(facts["cgroup"]["controllers"]))
        if missing:
            advice = "remove cgroup_disable= from the kernel's command line, or add cgroup_enable=memory, and reboot"
            causes = both([name], "mount")
            yield Finding(name, "cgroup", f"no cgroup controller {', '.join(missing)}", advice, causes)


def exports(cluster: Cluster) -> Iterator[Finding]:
    """The share can be written by all of its clients, which themselves show it as mounted read-write."""
    for name, facts in cluster.machines.items():
        readonly = [export for export in facts["exports"] if export["readonly"]]
        for path in sorted({export["path"] for export in readonly} & facts["wanted"]["paths"].keys()):
            clients = ", ".join(sorted(export["client"] for export in readonly if export["path"] == path))
            seen = f"{path} is exported read-only to {clients}"
            yield Finding(name, "export", seen, "run `stead up --tags nfs`; see `exportfs -v` and /etc/exports.d")


def swap(cluster: Cluster) -> Iterator[Finding]:
    """No worker swaps: its jobs would be slow, and their memory limits do not cover swap."""
    for name, facts in cluster.running("slurmd"):
        if facts["swap"] >= SWAPPED:
            seen = f"{facts['swap']} MiB of swap are in use"
            yield Finding(name, "swap", seen, "declare less RealMemory in slurm_nodes, then `swapoff -a` on it")
