# Copyright the Slurmstead authors. SPDX-License-Identifier: Apache-2.0
"""The archive that `stead backup` writes: one compressed tar file with a checksum of each file in it. Pure functions.

manifest.json        its table of contents: see `manifest`
state/…              slurmctld's StateSaveLocation
munge.key
slurm/…              the configuration of /etc/slurm
accounting.sql.gz    the records of all jobs, of a cluster that keeps them
hardware/NODE.yml    recorded hardware, from beside the inventory
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pathlib
import tarfile
import zlib
from collections.abc import Mapping
from typing import Any

FORMAT = 1
MANIFEST = "manifest.json"
KEY = "munge.key"
RECORDS = "accounting.sql.gz"
STATE, SLURM, HARDWARE = "state/", "slurm/", "hardware/"
"""Prefixes of names."""

NEEDED = ("cluster", "control", "created", "slurm", "state_directory", "managed", "jobs", "owners")
"""Keys of a manifest other than `format` and `files`."""


class DamagedError(Exception):
    """The bytes are not an intact archive; the text says what was seen."""


def pack(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """Return an archive. `files` are contents by name; their checksums are added to the manifest."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    whole = {**manifest, "format": FORMAT, "files": sums}
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as tar,
    ):
        for name, content in {MANIFEST: json.dumps(whole, indent=1).encode(), **files}.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def unpack(packed: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the contents by name. Raises DamagedError; nothing is written anywhere.

    >>> unpack(b"something else")
    Traceback (most recent call last):
    ...
    ansible.module_utils.slurmstead.backup.archive.DamagedError: it cannot be read: Not a gzipped file (b'so')
    """
    try:
        found = _members(gzip.decompress(packed))
        manifest = json.loads(found.pop(MANIFEST))
        if manifest["format"] != FORMAT:
            raise DamagedError(f"its format is {manifest['format']}, and this version of Slurmstead reads {FORMAT}")
        sums = dict(manifest["files"])
        missing = [name for name in NEEDED if name not in manifest]
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"it cannot be read: {error}") from None
    if missing:
        raise DamagedError(f"its {MANIFEST} lacks {', '.join(missing)}")
    if sums.keys() != found.keys():
        raise DamagedError(f"{', '.join(sorted(sums.keys() ^ found.keys()))}: either listed but missing, or not listed")
    for name, content in found.items():
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise DamagedError(f"{name} does not match its checksum")
        if pathlib.PurePosixPath(name).is_absolute() or ".." in pathlib.PurePosixPath(name).parts:
            raise DamagedError(f"{name} leads out of the archive")
    return manifest, found


def _members(content: bytes) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        for member in tar:
            stream = tar.extractfile(member)
            if stream is None:
                raise DamagedError(f"{member.name} is not a regular file")
            found[member.name] = stream.read()
    return found


def below(files: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    """Return the files whose names begin with a prefix, without it.

    >>> below({"state/job_state": b"1", "munge.key": b"2"}, STATE)
    {'job_state': b'1'}
    """
    return {name.removeprefix(prefix): content for name, content in files.items() if name.startswith(prefix)}


def file_name(manifest: Mapping[str, Any]) -> str:
    """Return the file name of an archive: cluster and time.

    >>> file_name({"cluster": "lab", "created": "2026-11-21T15:20:31Z"})
    'lab-2026-11-21T15.20.31Z.tar.gz'
    """
    return f"{manifest['cluster']}-{manifest['created']}.tar.gz".replace(":", ".").replace("/", "_")
