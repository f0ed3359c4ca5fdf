# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""A virtual machine of the lab: a pure description of the QEMU command that runs it."""

from __future__ import annotations

import base64
import dataclasses

GUEST_USER = "debian"
SWITCH = "switch"

RESTART_ON_STALL = ("rcupdate.rcu_cpu_stall_timeout=60", "sysctl.kernel.panic_on_rcu_stall=1", "panic=1")
"""Kernel arguments that restart a machine whose boot hangs.

Under TCG and load, a kernel may lose a timer: from then on it only reports that RCU stalls. The image ends this when
the machine has booted, because a suspended computer looks the same to a machine.
"""


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Differences between the machines that QEMU can emulate."""

    qemu: str
    machine: str
    cpu: dict[str, str]
    """CPU model by accelerator. Under TCG a model without AVX is a quarter faster: each AVX instruction is emulated."""
    console: str
    tcg_arguments: tuple[str, ...] = ()
    """Further kernel arguments under TCG.

    QEMU 7.2 corrupts the flags after a CMPXCHG16B without LOCK, which Linux uses to allocate memory: 6.12 panics at
    boot. It is disabled only for the kernel, because programs built for x86-64-v2 require it.
    """


ARCHITECTURES = {
    "amd64": Architecture(
        "qemu-system-x86_64", "q35", {"kvm": "host", "tcg": "Nehalem"}, "ttyS0", ("clearcpuid=cx16",)
    ),
    "arm64": Architecture("qemu-system-aarch64", "virt,gic-version=3", {"kvm": "host", "tcg": "cortex-a76"}, "ttyAMA0"),
}

BUSES = {
    "nvme": ["-device", "nvme,drive={id},serial={serial}"],
    "scsi": ["-device", "virtio-scsi-pci,id={id}-bus", "-device", "scsi-hd,bus={id}-bus.0,drive={id},serial={serial}"],
    "virtio": ["-device", "virtio-blk-pci,drive={id},serial={serial}"],
}
"""QEMU devices by the bus of a disk; with each, the disk gets a name in /dev/disk/by-id."""


@dataclasses.dataclass(frozen=True)
class Disk:
    """An extra disk; `size` in GiB."""

    serial: str
    size: int
    bus: str = "virtio"


@dataclasses.dataclass(frozen=True)
class Machine:
    """One virtual machine; `memory` in MiB, `address` with its prefix length, `number` unique in the lab."""

    name: str
    number: int
    address: str
    architecture: str
    memory: int
    cpus: int
    disks: tuple[Disk, ...] = ()
    device_tree: str = ""
    """File with the device tree that replaces QEMU's own."""

    @property
    def cluster_mac(self) -> str:
        """The hardware address on the network between the nodes."""
        return f"52:54:00:00:01:{self.number:02x}"

    @property
    def uplink_mac(self) -> str:
        """The hardware address on the network that leads to the mirror."""
        return f"52:54:00:00:00:{self.number:02x}"


def first_boot_files(machine: Machine, authorized_key: str, host_key: str) -> str:
    """Return the tmpfiles.d(5) lines that create a machine's key, host key and address.

    systemd in the guest takes them from the credential `tmpfiles.extra` (systemd.system-credentials(7), v252).
    """
    home = f"/home/{GUEST_USER}/.ssh"
    network = f"[Match]\nMACAddress={machine.cluster_mac}\n\n[Network]\nAddress={machine.address}\n"
    files = [
        (f"{home}/authorized_keys", "0600", GUEST_USER, authorized_key),
        ("/etc/ssh/ssh_host_ed25519_key", "0600", "root", host_key),
        ("/etc/systemd/network/10-cluster.network", "0644", "root", network),
    ]
    lines = [f"d {home} 0700 {GUEST_USER} {GUEST_USER}"]
    for path, mode, owner, content in files:
        lines.append(f"f~ {path} {mode} {owner} {owner} - {base64.b64encode(content.encode()).decode()}")
    return "\n".join(lines) + "\n"


def qemu_command(machine: Machine, directory: str, image: str, accelerator: str, port: int) -> list[str]:
    """Return the command that starts a machine in `directory`.

    `image` is the directory of a built image, `port` the TCP port on loopback that leads to the guest's sshd. Paths of
    sockets are relative to `directory`, the current one, because they have at most 107 bytes (unix(7)). Paths of disks
    are absolute, because QEMU reopens them when its memory is saved, after it has left the directory.
    """
    architecture = ARCHITECTURES[machine.architecture]
    # When the buffer for translated code is full, QEMU discards all of it; the programs of a node need 210 MiB.
    threads = ",thread=multi,tb-size=256" if accelerator == "tcg" else ""
    arguments = ["root=/dev/vda", "rw", f"console={architecture.console}"]
    if accelerator == "tcg":
        # QEMU 7.2 translates code again for each address at which it is loaded, and addresses are random by default.
        arguments += ["norandmaps", *RESTART_ON_STALL, *architecture.tcg_arguments]
    disks = directory.replace(",", ",,")
    command = [
        architecture.qemu,
        "-name", machine.name,
        "-machine", architecture.machine,
        "-accel", accelerator + threads,
        "-cpu", architecture.cpu[accelerator],
        "-smp", str(machine.cpus),
        "-m", f"{machine.memory}M",
        "-nodefaults", "-no-user-config", "-display", "none",
        "-kernel", f"{image}/kernel",
        "-initrd", f"{image}/initrd",
        "-append", " ".join(arguments),
        "-fw_cfg", "name=opt/io.systemd.credentials/tmpfiles.extra,file=credentials",
        "-serial", "file:console.log",
        "-qmp", "unix:qmp,server=on,wait=off",
        "-pidfile", f"{directory}/pid", "-daemonize",
        "-drive", f"id=root,if=none,file={disks}/root.qcow2,format=qcow2,cache=unsafe",
        "-device", "virtio-blk-pci,drive=root",
        "-netdev", f"user,id=uplink,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device", f"virtio-net-pci,netdev=uplink,mac={machine.uplink_mac},romfile=",
        "-netdev", f"vde,id=cluster,sock=../{SWITCH}",
        "-device", f"virtio-net-pci,netdev=cluster,mac={machine.cluster_mac},romfile=",
        "-device", "virtio-rng-pci",
    ]  # fmt: skip
    if machine.device_tree:
        command += ["-dtb", machine.device_tree]
    for index, disk in enumerate(machine.disks):
        names = {"id": f"disk{index}", "serial": disk.serial}
        command += ["-drive", f"id=disk{index},if=none,file={disks}/{disk.serial}.raw,format=raw,cache=unsafe"]
        command += [part.format(**names) for part in BUSES[disk.bus]]
    return command


def ssh_config(machine: Machine, directory: str, key: str, port: int) -> str:
    """Return the ssh_config(5) section with which `ssh -F … NAME` reaches a machine."""
    options = {
        "HostName": "127.0.0.1",
        "Port": str(port),
        "User": GUEST_USER,
        "HostKeyAlias": machine.name,
        "UserKnownHostsFile": f'"{directory}/known_hosts"',
        "StrictHostKeyChecking": "yes",
        "IdentityFile": f'"{key}"',
        "IdentitiesOnly": "yes",
        "LogLevel": "ERROR",
    }
    return "\n".join([f"Host {machine.name}", *(f"    {name} {value}" for name, value in options.items())]) + "\n"


def lab_ssh_config(directory: str) -> str:
    """Return the ssh_config(5) text with which `ssh -F … NAME` reaches each machine of a lab."""
    return f'Include "{directory}/*/ssh_config"\n'
