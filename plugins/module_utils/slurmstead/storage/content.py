# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The content of a disk: signatures, and bytes at its ends and in its middle that erased media do not have.

Erased media return zeros, some flash returns 0xFF: a disk is blank if all bytes that are read are the same one of both.

Nothing here writes: devices are opened read-only, and blkid(8) and wipefs(8) are called in read-only modes. A close
after a read-only open raises no udev event, so an inspection has no effect.
"""

from __future__ import annotations

import subprocess
import time

from ansible.module_utils.slurmstead.storage import sampling
from ansible.module_utils.slurmstead.storage.disks import OUR_MEMBER_ID, DiskError, human_size, run
from ansible.module_utils.slurmstead.storage.sampling import EDGE, ERASED, Reader

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


def differs(data: bytes, erased: bytes) -> bool:
    """Say whether any byte is not the erased one."""
    return sampling.first_data(data, erased) is not None


def is_erased(data: bytes) -> bool:
    """Say whether there is nothing but zeros, which LVM writes, and the bytes of erased media."""
    return not data.translate(None, b"".join(ERASED))


def read_head(path: str, size: int) -> bytes:
    """Return the first EDGE bytes of a device or image of `size` bytes, or all of a smaller one; raises OSError."""
    with Reader(path) as reader:
        return reader.read(0, min(EDGE, size))


def erased_byte(head: bytes) -> bytes:
    """Return the byte of which a disk that begins with `head` must consist to be blank.

    The last byte of `head` decides, because pvcreate writes zeros before its label, also on a disk of ones.
    """
    return head[-1:] if head[-1:] in ERASED else ERASED[0]


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
    around = head[: LABEL.start] + head[LABEL.stop : HEADER.start]
    if not is_erased(around) or differs(head[TEXT.stop :], erased_byte(head)):
        return None
    if header[4:20] != b" LVM2 x[5A%r0N*>" or differs(header[40:64], ERASED[0]):
        return None
    if is_erased(label):
        return "header" if is_erased(text) else None
    ours = label[:8] == b"LABELONE" and label[24:32] == b"LVM2 001" and label[32:64].startswith(OUR_MEMBER_ID.encode())
    if not ours:
        return None
    return "used" if differs(label[USED], ERASED[0]) else "label"


def content(path: str, size: int) -> list[str]:
    """Return the content of a device or image of `size` bytes; empty if it is blank.

    An unfinished physical volume of ours does not count. The middle is read only if nothing else was found.
    Raises DiskError if the content cannot be determined.
    """
    try:
        with Reader(path) as reader:
            return _content(path, size, reader)
    except OSError as error:
        return [f"it cannot be read: {error.strerror or error}"]


def _content(path: str, size: int, reader: Reader) -> list[str]:
    deadline = time.monotonic() + sampling.BOUND
    head = reader.read(0, min(EDGE, size))
    start = max(EDGE, size - EDGE)
    tail = reader.read(start, max(0, size - start))
    reading = deadline - time.monotonic()
    erased, unfinished = erased_byte(head), unfinished_member(head)
    found = signatures(path)
    at = sampling.first_data(head, erased)
    if unfinished:
        found = [name for name in found if "LVM2_member" not in name]
    elif at is not None:
        found.append(f"data in the first {human_size(len(head))}, at byte {at}")
    at = sampling.first_data(tail, erased)
    if at is not None:
        found.append(f"data in the last {human_size(len(tail))}, at byte {start + at}")
    # The time of blkid and wipefs does not count.
    middle = None if found else sampling.middle_finding(reader, size, erased, time.monotonic() + reading)
    return [*found, middle] if middle else found
