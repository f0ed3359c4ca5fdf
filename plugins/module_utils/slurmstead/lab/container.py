# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A container of the lab: a pure description of the commands that run it.

It boots the disk image of a virtual machine, below its own overlay, and has the same two networks: the one between the
nodes, a bridge in a network namespace of the lab, and the uplink, a user-mode network (slirp4netns). So it changes no
interface, address or firewall rule of this computer, and labs cannot collide.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence

BRIDGE = "bridge"
"""File on which the namespace of the lab's bridge is mounted; if it exists, the lab consists of containers."""

NAMESPACE = "network"
"""File in a container's directory on which its network namespace is mounted."""

UPLINK_SOCKET = "uplink"
UPLINK_ADDRESS = "10.0.2.15"
"""Address of the uplink in the image (roles/lab/files/image/customize-hook)."""

AUTOFS = "/dev/autofs"
"""Device for systemd's automounts; nspawn does not provide it in a container."""

ENVIRONMENT = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
"""systemd 256 and newer refuses to boot with cgroups version 1, even if this computer itself uses it."""

FIRST_FILES = {
    "etc/systemd/system/chrony.service.d/lab.conf": (
        "[Unit]\nConditionCapability=\n\n[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x $DAEMON_OPTS\n"
    ),
}
"""Files of a new container by path below its root. Its chrony serves time but does not set this computer's clock."""

MASKED_UNITS = ("nfs-server.service", "proc-fs-nfsd.mount", "run-rpc_pipefs.mount")
"""Units that would fail at each boot, because they need a separate kernel."""

START = r"""
set -eu
home=$1 image=$3
shift 3
if [ ! -d /run/systemd/system ]; then
    # Without systemd, no scope is created: the container gets its own cgroup, and nspawn's /run/systemd stays private.
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

Arguments: the container's directory, its root (which identifies the process), the image, and the command.
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
        """The mount point of its tree."""
        return f"{self.home}/root"

    @property
    def port(self) -> str:
        """Its interface on the lab's bridge; names of interfaces have at most 15 characters."""
        return f"port{self.number}"


def directories(container: Container) -> list[str]:
    """Return the directories that must exist before a container starts."""
    return [f"{container.home}/{name}" for name in ("image.mount", "changes", "work", "root")]


def cgroups(container: Container, mounts: str) -> list[str]:
    """Return the cgroups for a container, in the hierarchies that systemd uses to track processes.

    `mounts` is the text of /proc/self/mounts. The cgroups' names contain the lab's directory.

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
    """Return the command that runs a container whose tree is mounted.

    :param systemd: this computer runs systemd, which then creates a scope for the container
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
        # nspawn grants this only with a network that it creates itself; systemd-networkd needs it.
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
    """Return the commands that create the lab's bridge in a namespace, and mount the namespace on an empty file."""
    return [
        ["unshare", f"--net={namespace}", "ip", "link", "add", "bridge", "type", "bridge", "forward_delay", "0"],
        ["nsenter", f"--net={namespace}", "ip", "link", "set", "bridge", "up"],
    ]


def cable_commands(container: Container, bridge: str, mac: str) -> list[list[str]]:
    """Return the commands that create a container's namespace on an empty file, and its interface to the bridge."""
    namespace, port = f"{container.home}/{NAMESPACE}", container.port
    inside = ["nsenter", f"--net={bridge}", "ip", "link"]
    peer = ["peer", "name", "cluster", "address", mac, "netns", namespace]
    return [
        ["unshare", f"--net={namespace}", "true"],
        [*inside, "add", port, "type", "veth", *peer],
        [*inside, "set", port, "master", "bridge", "up"],
    ]


def unplug_command(container: Container, bridge: str) -> list[str]:
    """Return the command that removes a container's interface; the kernel itself would remove it with a delay."""
    return ["nsenter", f"--net={bridge}", "ip", "link", "delete", container.port]


def uplink_command(container: Container, bridge: str, life: int) -> list[str]:
    """Return the command that gives a container its uplink, until the pipe `life` is closed at its other end.

    Then it unplugs the container, because the kernel answers for a namespace without processes. It runs in the
    container's directory. The name of its socket is relative because it has at most 107 bytes (unix(7)).
    """
    words = ("slirp4netns", "--netns-type=path", f"--api-socket={UPLINK_SOCKET}", f"--exit-fd={life}")
    unplug = shlex.join(unplug_command(container, bridge))
    return ["sh", "-c", f'{shlex.join(words)} "$0" uplink; {unplug}', f"{container.home}/{NAMESPACE}"]


def forwarding(port: int) -> dict[str, object]:
    """Return the request that makes slirp4netns forward a TCP port of loopback to a container's sshd."""
    addresses = {"host_addr": "127.0.0.1", "host_port": port, "guest_addr": UPLINK_ADDRESS, "guest_port": 22}
    return {"execute": "add_hostfwd", "arguments": {"proto": "tcp", **addresses}}


def owns(container: Container, arguments: Sequence[str]) -> str:
    """Return the role of a process with these arguments for a container: `machine`, `uplink`, or empty.

    >>> owns(Container("node1", 1, "default", "/lab/node1"), ["systemd-nspawn", "--directory", "/lab/node1/root"])
    'machine'
    """
    if container.root in arguments:
        return "machine"
    uplink = arguments[:1] in (["slirp4netns"], ["sh"]) and f"{container.home}/{NAMESPACE}" in arguments
    return "uplink" if uplink else ""
