# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""Rules for disks and paths."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from ansible.module_utils.slurmstead.inventory.model import HostViolation, Violation, shown
from ansible.module_utils.slurmstead.storage.disks import is_stable
from ansible.module_utils.slurmstead.storage.images import FORM

SYSTEM_PATHS = frozenset(
    "/ /bin /boot /dev /dev/shm /etc /lib /lib64 /opt /proc /root /run /sbin /sys /tmp /usr /usr/local /var /var/cache "
    "/var/lib /var/log /var/spool /var/tmp".split()
)
"""Directories that a mount must not hide, and whose mode must not change."""

WORLD_WIDE = re.compile(r"/dev/disk/by-id/(wwn-0x|scsi-3|dm-uuid-mpath-3)")
"""Names with a World Wide Name; those with a model and a serial are the same on many virtual machines."""


def scratch_disks_have_stable_names(scratch_disks: Sequence[str]) -> Iterator[Violation]:
    """/dev/sda can be a different disk after a reboot, and a file system is written to it."""
    yield from _unstable_disks("scratch_disks", scratch_disks)


def nfs_server_disks_have_stable_names(nfs_server_disks: Sequence[str]) -> Iterator[Violation]:
    """As for scratch_disks."""
    yield from _unstable_disks("nfs_server_disks", nfs_server_disks)


def nfs_server_size_is_a_size(nfs_server_size: str) -> Iterator[Violation]:
    """The size of the share's file, for local_volume."""
    if not re.fullmatch(FORM, nfs_server_size):
        yield "nfs_server_size", f"is {shown(nfs_server_size)}", "Write auto, or a number with M, G or T, such as 200G"


def disks_are_used_once(scratch_disks: Sequence[str], nfs_server_disks: Sequence[str]) -> Iterator[Violation]:
    """A disk, or a disk and one of its partitions, cannot be used twice."""
    uses = [("scratch_disks", disk) for disk in scratch_disks]
    uses += [("nfs_server_disks", disk) for disk in nfs_server_disks]
    for (first, one), (second, other) in itertools.combinations(uses, 2):
        if one == other:
            wrong = f"names {one} twice" if first == second else f"names {one}, and so does {second}"
        elif one == _whole_disk(other) or other == _whole_disk(one):
            wrong = f"names {one}, and {second} names {other}, which is the same disk"
        else:
            continue
        yield first, wrong, "Name each disk once"


def disks_are_of_one_machine(
    scratch_disks: Mapping[str, Sequence[str]],
    nfs_server_disks: Mapping[str, Sequence[str]],
    worker_names: Sequence[str],
    nfs_server_names: Sequence[str],
) -> Iterator[HostViolation]:
    """A second machine would find the volume of the first on a shared disk, and mount it as its own."""
    uses = [("scratch_disks", host, disk) for host in worker_names for disk in scratch_disks.get(host, ())]
    uses += [("nfs_server_disks", host, disk) for host in nfs_server_names for disk in nfs_server_disks.get(host, ())]
    for name in sorted({disk for _, _, disk in uses if WORLD_WIDE.match(disk)}):
        hosts = sorted({host for _, host, disk in uses if disk == name})
        if len(hosts) > 1:
            variable = next(variable for variable, _, disk in uses if disk == name)
            wrong = "but that is one disk, which both would mount and so destroy its files"
            yield tuple(hosts), variable, f"has {name} on {len(hosts)} hosts, {wrong}", "Declare it for one host"


def paths_are_apart(scratch_path: str, nfs_server_path: str, nfs_client_path: str) -> Iterator[Violation]:
    """A mount below another one hides files or disappears with it; a mount over the system makes it unusable."""
    paths = {"scratch_path": scratch_path, "nfs_server_path": nfs_server_path, "nfs_client_path": nfs_client_path}
    for variable, path in paths.items():
        if posixpath.normpath(path) != path:
            yield variable, f"is {shown(path)}, which is not in its shortest form", f"Write {posixpath.normpath(path)}"
        elif path in SYSTEM_PATHS:
            yield variable, f"is {path}, which belongs to the system", "Choose a directory of its own, such as /scratch"
        elif variable == "nfs_client_path" and path == "/home":
            wrong = f"is {path}, where the account of Ansible has its key, which the share would hide"
            yield variable, wrong, "Choose a directory of its own, such as /share"
        elif re.search(r"\s", path):
            yield variable, f"is {shown(path)}, which contains a space", "Choose a name without one: fstab needs none"
    for (first, one), (second, other) in itertools.permutations(paths.items(), 2):
        if one == other and first < second:
            yield first, f"is {one}, as is {second}", "Give each its own directory"
        elif other.startswith(f"{one.rstrip('/')}/") and one not in SYSTEM_PATHS:
            yield second, f"is {other}, which is below {first}, {one}", "Put neither below the other"


def volume_groups_are_apart(
    scratch_volume_group: str,
    nfs_server_volume_group: str,
    scratch_disks: Sequence[str],
    nfs_server_disks: Sequence[str],
) -> Iterator[Violation]:
    """A volume group has one owner, and a name that device-mapper does not change (it doubles hyphens)."""
    for variable, name in (
        ("scratch_volume_group", scratch_volume_group),
        ("nfs_server_volume_group", nfs_server_volume_group),
    ):
        if not re.fullmatch(r"[A-Za-z0-9_]+", name):
            yield variable, f"is {shown(name)}", "Use letters, digits and _"
    if scratch_volume_group == nfs_server_volume_group and scratch_disks and nfs_server_disks:
        yield "scratch_volume_group", f"is {scratch_volume_group}, as is nfs_server_volume_group", "Rename one of them"


def homes_are_on_the_share(accounts_home_root: str, nfs_client_path: str) -> Iterator[Violation]:
    """A job finds its user's home on every node only if homes are on the share, in a directory of their own."""
    if not accounts_home_root.rstrip("/").startswith(f"{nfs_client_path}/"):
        yield (
            "accounts_home_root",
            f"is {accounts_home_root}, which is not below the share, {nfs_client_path}",
            f"Write a directory such as {nfs_client_path}/home",
        )


def _unstable_disks(variable: str, disks: Sequence[str]) -> Iterator[Violation]:
    advice = "Write its name below /dev/disk/by-id, which `ls -l /dev/disk/by-id` on the machine shows"
    for disk in itertools.filterfalse(is_stable, disks):
        yield variable, f"has {shown(disk)}, which can name a different disk after a reboot", advice


def _whole_disk(name: str) -> str:
    """The disk of a partition's name (`…-part1`, in udev's notation)."""
    return re.sub(r"-part\d+$", "", name)
