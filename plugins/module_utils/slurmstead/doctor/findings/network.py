# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Are the machines there, do they know each other, and who else can reach them?"""

from __future__ import annotations

from collections.abc import Iterator

from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding
from ansible.module_utils.slurmstead.slurm.hostlist import compress

TO_ANYBODY = {
    "slurmctld": {"slurmctld"},
    "slurmd": {"slurmd", "slurmstepd"},
}
"""Processes that may have ports open, by the unit for which they do."""

EVERYWHERE = {"sshd", "srun", "salloc", "rpcbind", "rpc.mountd", "rpc.statd", "systemd-resolve"}
"""Those that may on any machine: ssh, clients of Slurm, and what NFS needs."""

ANY = ("0.0.0.0", "::", "*")
"""How ss(8) writes that a socket listens on every address."""


def silent_machines(cluster: Cluster) -> Iterator[Finding]:
    """A machine that cannot be checked, though it should be on."""
    for name, why in cluster.silent.items():
        if not cluster.sleeps(name):
            yield Finding(
                name, "ssh", f"it cannot be checked ({why})", f"check that it is on and that `ssh {name}` works"
            )


def names(cluster: Cluster) -> Iterator[Finding]:
    """Slurm knows a machine by the name that it gives itself."""
    for name, facts in cluster.machines.items():
        if facts["name"] != name:
            yield Finding(name, "name", f"it calls itself {facts['name']}", "run site.yml --tags os")


def addresses(cluster: Cluster) -> Iterator[Finding]:
    """A machine has the address that all others have of it."""
    for name, facts in cluster.machines.items():
        wanted = cluster.addresses.get(name)
        if wanted and wanted not in facts["addresses"]:
            seen = f"it has the address {', '.join(facts['addresses']) or 'none'}, and not {wanted}"
            yield Finding(name, "address", seen, "correct os_address, or the machine's network")


def resolution(cluster: Cluster) -> Iterator[Finding]:
    """Every machine finds every other under the address in the inventory."""
    for name, facts in cluster.machines.items():
        found = {other: facts["resolved"].get(other, []) for other in cluster.addresses}
        wrong = {other: seen for other, seen in found.items() if seen != [cluster.addresses[other]]}
        takes = [f"takes {other} for {', '.join(seen)}" for other, seen in wrong.items() if seen]
        unknown = [other for other, seen in wrong.items() if not seen]
        if unknown:
            takes.append(f"does not know {compress(unknown)}")
        if takes:
            yield Finding(name, "resolution", f"it {' and '.join(takes)}", "run site.yml --tags os for /etc/hosts")


def ports(cluster: Cluster) -> Iterator[Finding]:
    """Nobody but the services of the cluster listens to all networks."""
    for name, facts in cluster.machines.items():
        units = facts["wanted"]["units"]
        expected = EVERYWHERE.union(*(TO_ANYBODY.get(unit, set()) for unit in units))
        for port in facts["listening"]:
            meant = port["process"] in expected or port["port"] in facts["wanted"]["ports"]
            # What listens to the cluster's own address is for the cluster.
            if not meant and port["address"] != cluster.addresses.get(name):
                where = "to all networks" if port["address"] in ANY else f"on {port['address']}"
                seen = f"port {port['port']} is open {where} ({port['process']}, process {port['pid']})"
                advice = "stop it, make it listen on 127.0.0.1 only, or list the port in os_open_ports"
                yield Finding(name, "port", seen, advice)
