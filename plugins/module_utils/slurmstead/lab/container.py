# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a container of the lab is made of: a pure description of the commands that run it.

It boots the disk image of a virtual machine, below an overlay of its own, and finds the same two networks: the one
between the nodes, a bridge in a network namespace of the lab, and the uplink, a network in user mode (slirp4netns).
So no interface, address or firewall rule of this computer is touched, and labs cannot collide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

BRIDGE = "bridge"
"""File on which the namespace of the lab's bridge is mounted; where it exists, the lab is made of containers."""

NAMESPACE = "network"
"""File in a container's directory on which its network namespace is mounted."""

UPLINK_SOCKET = "uplink"
UPLINK_ADDRESS = "10.0.2.15"
"""The address that the image gives the uplink (roles/lab/files/image/customize-hook)."""

AUTOFS = "/dev/autofs"
"""Device by which systemd mounts on first use; nspawn gives a container none."""

ENVIRONMENT = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
"""systemd 256 and newer refuses to boot on version 1 of cgroups, whatever this computer itself uses."""

FIRST_FILES = {
    "etc/systemd/system/chrony.service.d/lab.conf": (
        "[Unit]\nConditionCapability=\n\n[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x $DAEMON_OPTS\n"
    ),
}
"""Files of a new container by path below its root. Its chrony serves and measures time but leaves the clock, which is
this computer's, alone."""

MASKED_UNITS = ("nfs-server.service", "proc-fs-nfsd.mount", "run-rpc_pipefs.mount")
"""What would fail at each boot, because only a kernel of its own has it."""

START = r"""
set -eu
home=$1 image=$3
shift 3
if [ ! -d /run/systemd/system ]; then
    # Nothing here makes a scope for the container: it gets a cgroup of its own, and nspawn's notes stay private.
    mkdir -p /run/systemd
    mount -t tmpfs tmpfs /run/systemd
    for cgroup in $CGROUPS; do
        mkdir -p "$cgroup"
        echo $$ > "$cgroup/cgroup.procs"
    done
fi
mount -o loop,ro,noload "$image/disk" "$home/image.mount"
mount -t overlay -o "lowerdir=$home/image.mount,upperdir=$home/changes,workdir=$home/work" overlay "$home/root"
while code=0; "$@" || code=$?; [ "$code" = 133 ]; do :; done
exit "$code"
"""
"""Mounts a container's tree in its mount namespace and runs nspawn, again after a reboot (exit code 133).

The arguments are the container's directory, its root, which tells the process from others, the image, and the command.
"""


@dataclasses.dataclass(frozen=True)
class Container:
    """One container; `home` is its directory, `shared` maps its directories to those of this computer."""

    name: str
    number: int
    lab: str
    home: str
    shared: tuple[tuple[str, str], ...] = ()

    @property
    def root(self) -> str:
        """The directory on which its tree is mounted."""
        return f"{self.home}/root"

    @property
    def port(self) -> str:
        """Its interface on the lab's bridge; names of interfaces have at most 15 characters."""
        return f"port{self.number}"


def directories(container: Container) -> list[str]:
    """Return the directories that must exist before a container starts."""
    return [f"{container.home}/{name}" for name in ("image.mount", "changes", "work", "root")]


def cgroups(container: Container, mounts: str) -> list[str]:
    """Return the cgroups for a container, in the hierarchies in which systemd keeps track of processes.

    `mounts` is the text of /proc/self/mounts. The name of the lab's directory is part of theirs.

    >>> node = Container("node1", 1, "default", "/state/lab/default/node1")
    >>> cgroups(node, "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0")
    ['/sys/fs/cgroup/slurmstead-state-lab-default-node1']
    """
    name = f"slurmstead-{container.home.strip('/').replace('/', '-')}"
    found = []
    for line in mounts.splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            found.append(f"{where}/{name}")
    return sorted(found)


def nspawn_command(container: Container, *, systemd: bool, autofs: bool) -> list[str]:
    """Return the command of a container, to be run once its tree is mounted.

    :param systemd: this computer runs systemd, which then makes a scope for the container
    :param autofs: this computer has `/dev/autofs`
    """
    command = [
        "systemd-nspawn",
        "--boot",
        "--quiet",
        "--directory", container.root,
        "--machine", f"{container.lab}-{container.name}",
        "--hostname", container.name,
        "--register=no",
        f"--network-namespace-path={container.home}/{NAMESPACE}",
        # nspawn grants it with a network of its own making only; systemd-networkd needs it.
        "--capability=CAP_NET_ADMIN",
        f"--load-credential=tmpfiles.extra:{container.home}/credentials",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--console=pipe",
    ]  # fmt: skip
    if not systemd:
        command.append("--keep-unit")
    if autofs:
        command.append(f"--bind={AUTOFS}")
    command += [f"--bind={source}:{path}" for path, source in container.shared]
    return command


def bridge_commands(namespace: str) -> list[list[str]]:
    """Return the commands that make the lab's bridge in a namespace that they mount on an empty file."""
    return [
        ["unshare", f"--net={namespace}", "ip", "link", "add", "bridge", "type", "bridge", "forward_delay", "0"],
        ["nsenter", f"--net={namespace}", "ip", "link", "set", "bridge", "up"],
    ]


def cable_commands(container: Container, bridge: str, mac: str) -> list[list[str]]:
    """Return the commands that make a container's namespace on an empty file, and its interface to the bridge."""
    namespace, port = f"{container.home}/{NAMESPACE}", container.port
    inside = ["nsenter", f"--net={bridge}", "ip", "link"]
    peer = ["peer", "name", "cluster", "address", mac, "netns", namespace]
    return [
        ["unshare", f"--net={namespace}", "true"],
        [*inside, "add", port, "type", "veth", *peer],
        [*inside, "set", port, "master", "bridge", "up"],
    ]


def unplug_command(container: Container, bridge: str) -> list[str]:
    """Return the command that removes a container's interface; the kernel would do it only some time after its end."""
    return ["nsenter", f"--net={bridge}", "ip", "link", "delete", container.port]


def uplink_command(container: Container) -> list[str]:
    """Return the command that gives a container its uplink; it runs in the container's directory.

    The name of its socket is relative because it has at most 107 bytes (unix(7)).
    """
    namespace = f"{container.home}/{NAMESPACE}"
    return ["slirp4netns", "--netns-type=path", f"--api-socket={UPLINK_SOCKET}", namespace, "uplink"]


def forwarding(port: int) -> dict[str, object]:
    """Return the request that makes slirp4netns forward a TCP port of loopback to a container's sshd."""
    addresses = {"host_addr": "127.0.0.1", "host_port": port, "guest_addr": UPLINK_ADDRESS, "guest_port": 22}
    return {"execute": "add_hostfwd", "arguments": {"proto": "tcp", **addresses}}


def owns(container: Container, arguments: Sequence[str]) -> str:
    """Say what a process with these arguments is to a container: `machine`, `uplink`, or nothing of its own.

    >>> owns(Container("node1", 1, "default", "/lab/node1"), ["systemd-nspawn", "--directory", "/lab/node1/root"])
    'machine'
    """
    if container.root in arguments:
        return "machine"
    return "uplink" if arguments[:1] == ["slirp4netns"] and f"{container.home}/{NAMESPACE}" in arguments else ""
