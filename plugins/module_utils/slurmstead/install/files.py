# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The files that make a new system this machine's: its name, network, and disks."""

from __future__ import annotations

from ansible.module_utils.slurmstead.install.plan import Plan


def files(plan: Plan, root_id: str, esp_id: str) -> dict[str, tuple[str, int]]:
    """Return text and mode by path.

    :param root_id: UUID of the root file system
    :param esp_id: of the EFI system partition, as in 1A2B-3C4D
    """
    name = f"{plan.node}.{plan.domain} {plan.node}" if plan.domain else plan.node
    network = [
        *("[Match]", f"MACAddress={plan.card}", "", "[Network]", "DHCP=ipv4", ""),
        # The card asks as its firmware does, so that it gets one lease.
        *("[DHCPv4]", "ClientIdentifier=mac", "UseDomains=yes", "UseHostname=no", ""),
    ]
    return {
        "etc/hostname": (f"{plan.node}\n", 0o644),
        "etc/hosts": (f"127.0.0.1 localhost\n127.0.1.1 {name}\n", 0o644),
        "etc/fstab": (
            f"UUID={root_id} / ext4 errors=remount-ro 0 1\nUUID={esp_id} /boot/efi vfat umask=0077,nofail 0 2\n",
            0o644,
        ),
        "etc/resolv.conf": (f"search {plan.domain}\nnameserver {plan.router}\n", 0o644),
        "etc/systemd/network/20-inside.network": ("\n".join(network), 0o644),
        # systemd 252 sometimes does not begin with DHCP otherwise (systemd#24201).
        "etc/systemd/system/systemd-networkd.service.d/slurmstead.conf": (
            "[Unit]\nAfter=systemd-tmpfiles-setup.service\n",
            0o644,
        ),
        f"etc/sudoers.d/{plan.user}": (f"{plan.user} ALL=(ALL) NOPASSWD: ALL\n", 0o440),
        f"home/{plan.user}/.ssh/authorized_keys": ("".join(f"{key}\n" for key in plan.keys), 0o600),
    }
