# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for machines that are installed over the network."""

from __future__ import annotations

from collections.abc import Iterator

from ansible.module_utils.slurmstead.inventory.model import Violation, shown


def install_disks_have_stable_names(install_disk: str) -> Iterator[Violation]:
    """A serial stays with its disk; /dev/sda is another disk after the next boot."""
    if install_disk.startswith("/") and not install_disk.startswith("/dev/disk/by-id/"):
        yield (
            "install_disk",
            f"is {shown(install_disk)}, which can be another disk after the next boot",
            "Write the serial of the disk, or its name in /dev/disk/by-id",
        )
