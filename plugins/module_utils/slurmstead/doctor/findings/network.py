# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Do the machines answer, can they resolve each other, and which ports are open to other networks?"""

from __future__ import annotations

from collections.abc import Iterator

from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding
from ansible.module_utils.slurmstead.slurm.hostlist import compress

TO_ANYBODY = {
    "slurmctld": {"slurmctld"},
    "slurmd": {"slurmd", "slurmstepd"},
}
"""Processes that may have open ports, by unit."""

EVERYWHERE = {"sshd", "srun", "salloc", "rpcbind", "rpc.mountd", "rpc.statd", "systemd-resolve"}
"""Processes that may have open ports on any machine: ssh, Slurm's clients, and NFS."""

ANY = ("0.0.0.0", "::", "*")
"""Addresses in ss(8) of sockets that listen on every address."""


def silent_machines(cluster: Cluster) -> Iterator[Finding]:
    """Every machine that should be on can be checked."""
    for name, why in cluster.silent.items():
        if not cluster.sleeps(name):
            yield Finding(
                name, "ssh", f"it cannot be checked ({why})", f"check that it is on and that `ssh {name}` works"
            )


def names(cluster: Cluster) -> Iterator[Finding]:
    """A machine's host name is its name in the inventory, by which Slurm knows it."""
    for name, facts in cluster.machines.items():
        if facts["name"] != name:
            yield Finding(name, "name", f"its host name is {facts['name']}", "run site.yml --tags os")


def addresses(cluster: Cluster) -> Iterator[Finding]:
    """A machine has the address that the inventory declares."""
    for name, facts in cluster.machines.items():
        wanted = cluster.addresses.get(name)
        if wanted and wanted not in facts["addresses"]:
            seen = f"it has the address {', '.join(facts['addresses']) or 'none'}, not {wanted}"
            yield Finding(name, "address", seen, "correct os_address, or the machine's network")


def resolution(cluster: Cluster) -> Iterator[Finding]:
    """Every machine resolves every other to the address in the inventory."""
    for name, facts in cluster.machines.items():
        found = {other: facts["resolved"].get(other, []) for other in cluster.addresses}
        wrong = {other: seen for other, seen in found.items() if seen != [cluster.addresses[other]]}
        takes = [f"resolves {other} to {', '.join(seen)}" for other, seen in wrong.items() if seen]
        unknown = [other for other, seen in wrong.items() if not seen]
        if unknown:
            takes.append(f"cannot resolve {compress(unknown)}")
        if takes:
            yield Finding(name, "resolution", f"it {' and '.join(takes)}", "run site.yml --tags os for /etc/hosts")


def ports(cluster: Cluster) -> Iterator[Finding]:
    """Only the cluster's services listen on all networks."""
    for name, facts in cluster.machines.items():
        units = facts["wanted"]["units"]
        expected = EVERYWHERE.union(*(TO_ANYBODY.get(unit, set()) for unit in units))
        for port in facts["listening"]:
            meant = port["process"] in expected or port["port"] in facts["wanted"]["ports"]
            # A socket on the cluster's own address is meant for the cluster.
            if not meant and port["address"] != cluster.addresses.get(name):
                where = "to all networks" if port["address"] in ANY else f"on {port['address']}"
                seen = f"port {port['port']} is open {where} ({port['process']}, process {port['pid']})"
                advice = "stop it, make it listen on 127.0.0.1 only, or list the port in os_open_ports"
                yield Finding(name, "port", seen, advice)
