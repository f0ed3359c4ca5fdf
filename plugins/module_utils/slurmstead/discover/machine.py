# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What a machine is, on the machine itself: serial, cores, memory, and disks with what is on them. Only reads."""

from __future__ import annotations

import concurrent.futures
import re
from pathlib import Path
from typing import Any

from ansible.module_utils.slurmstead.hardware import measure as hardware
from ansible.module_utils.slurmstead.hardware.kernel_files import text
from ansible.module_utils.slurmstead.storage import blank, disks

SERIALS = ("sys/class/dmi/id/product_serial", "sys/class/dmi/id/board_serial", "proc/device-tree/serial-number")

NO_SERIAL = re.compile(
    r"|n/?a|none|null|unknown|default.*|not .*|to be filled.*|system serial number|chassis.*|o\.?e\.?m\.?|(.)\1*"
    r"|0?123456789.*",
    re.IGNORECASE,
)
"""What makers of boards leave in the place of a serial."""


def serial(root: Path) -> str:
    """Return the serial of the machine; empty if its maker gave it none."""
    for name in SERIALS:
        found = (text(root / name) or "").strip("\0 ")
        if found.isprintable() and not NO_SERIAL.fullmatch(found):
            return found
    return ""


def product(root: Path) -> str:
    """Return the maker's name of the machine; empty if unknown."""
    names = ("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name")
    words = [text(root / name) or "" for name in names]
    found = " ".join(word for word in words if word) or hardware.device_tree(root)["board"] or ""
    return str(found) if found.isprintable() else ""


def measure(root: str = "/") -> dict[str, Any]:
    """Return what a person needs to know before the machine becomes a worker."""
    place = Path(root)
    shape = hardware.arrangement(hardware.cpus(place))
    found = hardware.disks(place)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        contents = list(pool.map(content, (one["id"] for one in found)))
    return {
        "serial": serial(place),
        "product": product(place),
        "cores": shape["cores"],
        "memory": hardware.memory(place),
        "disks": [{**one, "content": content} for one, content in zip(found, contents, strict=True)],
    }


def content(name: str | None) -> list[str]:
    """Return what is on a disk, or why it cannot be told; empty if it is blank."""
    if name is None:
        return ["it has no stable name in /dev/disk/by-id"]
    try:
        return blank.findings(disks.resolve(f"/dev/disk/by-id/{name}"))
    except disks.DiskError as error:
        return [str(error)]
