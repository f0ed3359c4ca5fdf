# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The content of a disk: signatures, and bytes near either end that are not zero.

Nothing here writes: devices are opened read-only, and blkid(8) and wipefs(8) are called in read-only modes. A close
after a read-only open raises no udev event, so an inspection has no effect.
"""

from __future__ import annotations

import errno
import subprocess

from ansible.module_utils.slurmstead.storage.disks import OUR_MEMBER_ID, DiskError, human_size, run

EDGE = 4 * 2**20
"""Bytes read at either end of a disk: where partition tables, boot loaders and the metadata of all formats begin."""

BLKID_NOTHING, BLKID_AMBIVALENT = 2, 8  # blkid(8), EXIT STATUS


def probe(path: str) -> dict[str, str]:
    """Return libblkid's findings from the device itself, not from its cache: TYPE, UUID, PTTYPE …

    Empty if it finds nothing; contradicting signatures are {"TYPE": "ambivalent"}.
    Raises DiskError if blkid fails.
    """
    done = _look(path, "blkid", "-p", "-o", "export", fine=(0, BLKID_NOTHING, BLKID_AMBIVALENT))
    if done.returncode == BLKID_AMBIVALENT:
        return {"TYPE": "ambivalent"}
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    # PART_ENTRY_* describes the place of a partition in its disk, not its content.
    return {key: value for key, _, value in pairs if key != "DEVNAME" and not key.startswith("PART_ENTRY_")}


def _look(path: str, *command: str, fine: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    """Run a tool that inspects a device; raises DiskError unless its exit code is in `fine`."""
    done = run([*command, path], deadline=60)
    if done.returncode not in fine:
        wrong = f"it failed ({done.returncode}): {done.stderr.strip()}"
        raise DiskError(f"{path}: expected {command[0]} to inspect it, but {wrong}")
    return done


def signatures(path: str) -> list[str]:
    """Return the signatures on a device or in an image, by blkid and by wipefs.

    wipefs lists all of them, and finds the backup of a partition table whose first copy is gone.
    Raises DiskError if one of the two fails.
    """
    found = probe(path)
    labels = {"PTTYPE": "partition table", "TYPE": "signature"}
    names = [f"{label} {found[key]}" for key, label in labels.items() if key in found]
    if found and not names:
        names = [f"content that blkid reports as {' '.join(f'{key}={value}' for key, value in sorted(found.items()))}"]
    done = _look(path, "wipefs", "--no-act", "--noheadings", "--output", "TYPE,OFFSET")
    places: dict[str, list[int]] = {}
    for kind, offset in map(str.split, done.stdout.splitlines()):
        places.setdefault(kind, []).append(int(offset, 16))
    for kind, offsets in places.items():
        more = f" and {len(offsets) - 1} more" if len(offsets) > 1 else ""
        names.append(f"{kind} at byte {min(offsets)}{more}")
    return names


def read_edges(path: str, size: int) -> tuple[bytes, bytes]:
    """Return the first EDGE bytes, and the last EDGE bytes of the rest; raises OSError."""
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
"""The flags of the physical volume's extension header in the label; LVM sets only PV_EXT_USED."""


def unfinished_member(head: bytes) -> str | None:
    """Return how far an interrupted pvcreate of ours got, if the first bytes of a disk contain nothing else.

    "label": it is a physical volume, not in a volume group yet. "header": pvcreate was killed before its last write.
    "used": vgcreate or vgextend was killed after marking it as used, before any group contained it. None: anything
    else.

    Layout: LVM2 lib/format_text/layout.h and lib/label/label.c. pvcreate writes the header, then the label; vgcreate
    marks the label, then writes the text, then makes the header point to it.
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
    """Return the content of a device or image of `size` bytes; empty if it is blank.

    An unfinished physical volume of ours does not count. Raises DiskError if the content cannot be determined.
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
