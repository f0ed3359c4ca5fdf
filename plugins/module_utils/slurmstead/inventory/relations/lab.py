# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for the virtual machines of the lab."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, shown
from ansible.module_utils.slurmstead.inventory.relations.addresses import used_twice

MIN_LAB_MEMORY = 512
"""MiB; a Debian 12 guest with slurmd and without a job uses about 200."""


def machines_are_possible(lab_memory: int, lab_cpus: int) -> Iterator[Violation]:
    """A machine below these limits does not boot to a working slurmd."""
    if lab_memory < MIN_LAB_MEMORY:
        yield "lab_memory", f"is {lab_memory} MiB", f"Write at least {MIN_LAB_MEMORY}"
    if lab_cpus < 1:
        yield "lab_cpus", f"is {lab_cpus}", "Write at least 1"


def numbers_differ(lab_number: Mapping[str, int]) -> Iterator[HostViolation]:
    """A machine's number determines its hardware addresses and its port on loopback."""
    yield from used_twice("lab_number", lab_number, "Give each host its own number")
    for host, number in lab_number.items():
        if not 1 <= number <= 254:
            yield (host,), "lab_number", f"is {number}", "Write a number from 1 to 254"


def name_is_a_file_name(lab_name: str) -> Iterator[Violation]:
    """The name is a directory and a part of socket paths, which can have 107 bytes (unix(7))."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", lab_name):
        yield "lab_name", f"is {shown(lab_name)}", "Use at most 32 lower-case letters, digits and inner hyphens"


def disks_are_distinct(lab_disks: Sequence[Mapping[str, Any]]) -> Iterator[Violation]:
    """A serial determines the name below /dev/disk/by-id; virtio truncates it to 20 bytes (VIRTIO_BLK_ID_BYTES)."""
    for serial, count in Counter(str(disk["serial"]) for disk in lab_disks).items():
        if count > 1:
            yield "lab_disks", f"has the serial {serial} {count} times", "Give each disk its own serial"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,20}", serial):
            yield "lab_disks", f"has the serial {shown(serial)}", "Use at most 20 letters, digits, - and _"
    for disk in lab_disks:
        if disk["size"] < 1:
            yield "lab_disks", f"{disk['serial']} has the size {disk['size']} GiB", "Write at least 1"
