# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Do the machines answer, can they resolve each other, and which ports are open to other networks?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ansible.module_utils.slurmstead.doctor.finding import Cluster, Finding, both
from ansible.module_utils.slurmstead.slurm.hostlist import compress

TO_ANYBODY = {
    "slurmctld": {"slurmctld"},
    "slurmd": {"slurmd", "slurmstepd"},
    "slurmdbd": {"slurmdbd"},
    "slurmstead-dnsmasq": {"dnsmasq"},
}
"""Processes that may have open ports, by unit."""

EVERYWHERE = {"sshd", "srun", "salloc", "rpc.mountd", "systemd-resolve"}
"""Processes that may have open ports on any machine: ssh, Slurm's clients, and NFS."""

TABLES = {
    "slurmstead-firewall": ("inet slurmstead", "its firewall"),
    "slurmstead-router": ("ip slurmstead_router", "the router's table"),
    "slurmstead-vpn": ("inet slurmstead_vpn", "the VPN's table"),
    "slurmstead-broker": ("inet slurmstead_broker", "the broker's table"),
}
"""Tables of nftables, and what we call them, by the unit that loads them."""

UDP = {"chronyd", "dhclient", "dhcpcd", "dnsmasq", "NetworkManager", "systemd-network", "systemd-timesyn"}
"""Processes with UDP ports for the time and the machine's address; ss(8) shows 15 characters of their names."""

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
            yield Finding(name, "name", f"its host name is {facts['name']}", "run `stead up --tags os`")


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
        wrong = facts["misresolved"]
        takes = [f"resolves {other} to {', '.join(seen)}" for other, seen in wrong.items() if seen]
        unknown = [other for other, seen in wrong.items() if not seen]
        if unknown:
            takes.append(f"cannot resolve {compress(unknown)}")
        if takes:
            yield Finding(name, "resolution", f"it {' and '.join(takes)}", "run `stead up --tags os` for /etc/hosts")


def firewalls(cluster: Cluster) -> Iterator[Finding]:
    """A machine's tables are in its kernel; `nft flush ruleset` removes them while their units stay active."""
    for name, facts in cluster.machines.items():
        for unit, (table, what) in TABLES.items():
            if unit in facts["wanted"]["units"] and table not in facts["tables"]:
                advice = f"`systemctl reload {unit}`, and find out what runs `nft flush ruleset`"
                yield Finding(name, "firewall", f"{what} is not loaded", advice, both([name], f"service {unit}"))


def ports(cluster: Cluster) -> Iterator[Finding]:
    """Only the cluster's services listen on all networks."""
    for name, facts in cluster.machines.items():
        units = facts["wanted"]["units"]
        expected = EVERYWHERE.union(*(TO_ANYBODY.get(unit, set()) for unit in units))
        tcp = ("tcp", "port", "os_open_ports", expected)
        udp = ("udp", "UDP port", "firewall_open_udp_ports", expected | UDP)
        found = [(*tcp, port) for port in facts["listening"]] + [(*udp, port) for port in facts["udp"]]
        for protocol, kind, variable, usual, port in found:
            meant = port["process"] in usual or port["port"] in facts["wanted"]["ports"][protocol]
            # A socket on the cluster's own address is meant for the cluster.
            if not meant and port["address"] != cluster.addresses.get(name):
                where = "on all networks" if port["address"] in ANY else f"on {port['address']}"
                seen = f"{kind} {port['port']} listens {where} ({port['process']}, process {port['pid']})"
                advice = f"stop it, make it listen on 127.0.0.1 only, or list the port in {variable}, which opens it"
                yield Finding(name, "port", seen, advice)


def blocked_ports(cluster: Cluster) -> Iterator[Finding]:
    """Each machine reaches the next worker and control; a ring finds a firewall on any worker with n connections."""
    for name, facts in cluster.machines.items():
        for peer, refused in facts["unreached"].items():
            if cluster.sleeps(peer):
                continue
            why = " and ".join(f"{port} ({said})" for port, said in refused.items())
            causes = both([peer], "ssh", "address", "service slurmd", "service slurmctld")
            causes += both([name], "address", "resolution")
            seen = f"it does not reach {peer} on TCP port {why}"
            advice = f"open all ports between the cluster's machines in the firewall of {peer} and {name}"
            yield Finding(name, "firewall", seen, advice, causes)


def packet_sizes(cluster: Cluster) -> Iterator[Finding]:
    """The networks of all machines have the same MTU; otherwise large packets between them are lost."""
    found = {name: facts["mtus"].get(cluster.addresses.get(name)) for name, facts in cluster.machines.items()}
    sizes = {name: size for name, size in found.items() if size}
    if len(set(sizes.values())) < 2:
        return
    usual, _ = Counter(sizes.values()).most_common(1)[0]
    others = compress(name for name, size in sizes.items() if size == usual)
    for name, size in sizes.items():
        if size != usual:
            seen = f"the MTU of its network is {size}, but {usual} on {others}"
            yield Finding(name, "mtu", seen, "give all machines of the network the same MTU")
