# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""One installation: what control knows about the new machine, and the texts that boot it."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from collections.abc import Mapping, Sequence
from typing import Any

INSTALLER = "/usr/local/libexec/slurmstead/installer"
"""The program of machine.py."""

TFTP = "/usr/lib/ipxe"
"""Of Debian's package ipxe."""

PORT = 69
"""Of TCP. Users cannot listen below 1024, so none can keep the server from starting."""

DNSMASQ = "/etc/slurmstead/dnsmasq.conf"
"""Of the role router."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """The machine to be installed, as the variables of the role describe it."""

    node: str
    mac: str
    address: str
    network: str
    router: str
    """address of control on the inside"""
    domain: str
    user: str
    keys: Sequence[str]
    """public keys of the account"""
    port: int = PORT
    serial: str = ""
    """that the machine must have; empty if any"""
    disk: str = ""
    """serial or name of the disk"""

    @property
    def card(self) -> str:
        """Return the MAC as the kernel writes it."""
        return self.mac.lower().replace("-", ":")

    def url(self, token: str) -> str:
        """Return where control serves this installation."""
        return f"http://{self.router}:{self.port}/{token}/"


def plan(options: Mapping[str, Any]) -> Plan:
    """Return the plan that the options of the role describe."""
    return Plan(**options)


def boot_script(plan: Plan, token: str) -> str:
    """Return the script with which iPXE starts the installer."""
    length = ipaddress.ip_network(plan.network).prefixlen
    url = plan.url(token)
    words = (
        *("initrd=initrd", "boot=stead", "console=ttyS0,115200", "console=tty0", "quiet", "panic=60"),
        *(f"stead.url={url}", f"stead.mac={plan.card}", f"stead.address={plan.address}/{length}"),
    )
    return f"#!ipxe\nkernel {url}kernel {' '.join(words)}\ninitrd --name initrd {url}initrd\nboot\n"


FROM_DISK = "#!ipxe\nexit 1\n"
"""For a machine that is installed: the firmware tries the next device. After a success UEFI would show its setup."""


def served(plan: Plan, token: str, image: str, checksum: str) -> dict[str, Any]:
    """Return what control serves to the new machine: texts, and files by their paths."""
    told = {"options": dataclasses.asdict(plan), "checksum": checksum}
    return {
        **{"address": plan.router, "port": plan.port, "node": plan.address, "token": token},
        "texts": {"boot": boot_script(plan, token), "done": FROM_DISK, "plan": json.dumps(told)},
        "files": {
            **{"installer": INSTALLER, "kernel": f"{image}/kernel", "initrd": f"{image}/initrd"},
            "root": f"{image}/root.tar.zst",
        },
    }


def dnsmasq(plan: Plan, token: str) -> str:
    """Return dnsmasq's configuration while one machine is installed: the router's, and the boot files for this card."""
    return "\n".join(
        [
            f"conf-file={DNSMASQ}",
            "enable-tftp",
            f"tftp-root={TFTP}",
            f"dhcp-mac=set:install,{plan.card}",
            "dhcp-match=set:ipxe,175",
            "dhcp-match=set:efi,option:client-arch,7",
            "dhcp-match=set:efi,option:client-arch,9",
            "dhcp-boot=tag:install,tag:!ipxe,tag:!efi,undionly.kpxe",
            "dhcp-boot=tag:install,tag:!ipxe,tag:efi,snponly.efi",
            f"dhcp-boot=tag:install,tag:ipxe,{plan.url(token)}boot",
            "",
        ]
    )
