# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""What is on a disk: signatures, and any byte near either end that is not zero.

Nothing here writes: devices are opened read-only, and blkid(8) and wipefs(8) are called in modes that only look. A
close after a read-only open raises no udev event, so looking at a disk has no effect either.
"""

from __future__ import annotations

import errno
import subprocess

from ansible.module_utils.slurmstead.storage.disks import OUR_MEMBER_ID, DiskError, human_size, run

EDGE = 4 * 2**20
"""Bytes read at either end of a disk: where partition tables, boot loaders and the metadata of all formats begin."""

BLKID_NOTHING, BLKID_AMBIVALENT = 2, 8  # blkid(8), EXIT STATUS


def probe(path: str) -> dict[str, str]:
    """Return what libblkid finds on a device by looking at it, not in its cache: TYPE, UUID, PTTYPE …

    Empty when nothing is there; signatures that contradict each other are {"TYPE": "ambivalent"}.
    Raises DiskError when blkid cannot say.
    """
    done = _look(path, "blkid", "-p", "-o", "export", fine=(0, BLKID_NOTHING, BLKID_AMBIVALENT))
    if done.returncode == BLKID_AMBIVALENT:
        return {"TYPE": "ambivalent"}
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    # PART_ENTRY_* is the place of a partition in its disk, which is not content.
    return {key: value for key, _, value in pairs if key != "DEVNAME" and not key.startswith("PART_ENTRY_")}


def _look(path: str, *command: str, fine: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    """Let a tool look at a device; raises DiskError unless it exits with a code that is `fine`."""
    done = run([*command, path], deadline=60)
    if done.returncode not in fine:
        wrong = f"it failed ({done.returncode}): {done.stderr.strip()}"
        raise DiskError(f"{path}: expected {command[0]} to look at it, {wrong}")
    return done


def signatures(path: str) -> list[str]:
    """Return the signatures on a device or in an image, by blkid and by wipefs.

    wipefs lists all of them, and sees the backup of a partition table whose first copy is gone.
    Raises DiskError when one of the two cannot say.
    """
    found = probe(path)
    labels = {"PTTYPE": "partition table", "TYPE": "signature"}
    names = [f"{label} {found[key]}" for key, label in labels.items() if key in found]
    if found and not names:
        names = [f"something that blkid calls {' '.join(f'{key}={value}' for key, value in sorted(found.items()))}"]
    done = _look(path, "wipefs", "--no-act", "--noheadings", "--output", "TYPE,OFFSET")
    places: dict[str, list[int]] = {}
    for kind, offset in map(str.split, done.stdout.splitlines()):
        places.setdefault(kind, []).append(int(offset, 16))
    for kind, offsets in places.items():
        more = f" and {len(offsets) - 1} more" if len(offsets) > 1 else ""
        names.append(f"{kind} at byte {min(offsets)}{more}")
    return names


def read_edges(path: str, size: int) -> tuple[bytes, bytes]:
    """Return the first EDGE bytes, and of what follows the last EDGE bytes; raises OSError."""
    edges = []
    with open(path, "rb") as file:
        for offset in (0, max(EDGE, size - EDGE)):
            want = max(0, min(EDGE, size - offset))
            file.seek(offset)
            edges.append(file.read(want))
            if len(edges[-1]) != want:
                raise OSError(errno.EIO, f"only {len(edges[-1])} of {want} bytes at byte {offset} can be read")
    return edges[0], edges[1]


def is_zero(data: bytes) -> bool:
    """Say whether all bytes are zero."""
    return data.count(0) == len(data)


LABEL = slice(512, 1024)
HEADER = slice(4096, 4608)
TEXT = slice(4608, 2**20)
USED = slice(140, 144)
"""In the label: the flags of the physical volume's extension header; the only one that LVM sets is PV_EXT_USED."""


def unfinished_member(head: bytes) -> str | None:
    """Say whether the first bytes of a disk hold nothing but a physical volume that we began to make on a blank disk.

    "label": it is a physical volume, not in a volume group yet. "header": pvcreate was killed before its last write.
    "used": vgcreate or vgextend were killed when they had marked it as used and no group had it yet. None: all else.

    Layout: LVM2 lib/format_text/layout.h and lib/label/label.c. pvcreate writes the header, then the label; vgcreate
    marks the label, then writes the text, then lets the header point to it.
    """
    label, header, text = head[LABEL], head[HEADER], head[TEXT]
    rest = head[: LABEL.start] + head[LABEL.stop : HEADER.start] + head[TEXT.stop :]
    if not is_zero(rest) or header[4:20] != b" LVM2 x[5A%r0N*>" or not is_zero(header[40:64]):
        return None
    if is_zero(label):
        return "header" if is_zero(text) else None
    ours = label[:8] == b"LABELONE" and label[24:32] == b"LVM2 001" and label[32:64].startswith(OUR_MEMBER_ID.encode())
    if not ours:
        return None
    return "label" if is_zero(label[USED]) else "used"


def content(path: str, size: int) -> list[str]:
    """Return what is on a device or in an image of `size` bytes; empty when it is blank.

    A physical volume that we began and did not finish counts as nothing. Raises DiskError when it cannot be judged.
    """
    try:
        head, tail = read_edges(path, size)
    except OSError as error:
        return [f"it cannot be read: {error.strerror or error}"]
    unfinished = unfinished_member(head)
    found = signatures(path)
    if unfinished:
        found = [name for name in found if "LVM2_member" not in name]
    elif not is_zero(head):
        found.append(f"data in the first {human_size(len(head))}")
    if not is_zero(tail):
        found.append(f"data in the last {human_size(len(tail))}")
    return found
