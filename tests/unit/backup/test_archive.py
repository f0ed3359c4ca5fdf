"""An archive holds what was put in, and one that was touched since is refused."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest

from ansible.module_utils.slurmstead.backup import archive as backup_archive
from ansible.module_utils.slurmstead.backup.archive import DamagedError, pack, unpack

MANIFEST = dict.fromkeys(backup_archive.NEEDED, "said")
FILES = {"state/job_state": bytes(range(256)) * 40, "munge.key": b"secret", "slurm/slurm.conf": b"ClusterName=lab\n"}


def test_what_was_put_in_comes_out() -> None:
    manifest, files = unpack(pack(MANIFEST, FILES))

    assert files == FILES
    assert {name: manifest[name] for name in MANIFEST} == MANIFEST


def test_the_same_cluster_makes_the_same_archive() -> None:
    assert pack(MANIFEST, FILES) == pack(MANIFEST, FILES)


@pytest.mark.parametrize("part", range(20))
def test_an_archive_with_another_byte_is_refused(part: int) -> None:
    packed = bytearray(pack(MANIFEST, FILES))
    # Behind the first ten bytes, of which gzip ignores time and system (RFC 1952).
    packed[10 + part * (len(packed) - 11) // 19] ^= 1

    with pytest.raises(DamagedError):
        unpack(bytes(packed))


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
def test_a_part_of_an_archive_is_refused(kept: float) -> None:
    packed = pack(MANIFEST, FILES)

    with pytest.raises(DamagedError):
        unpack(packed[: int(kept * len(packed))])


def tampered(change: Callable[[dict[str, bytes]], object], manifest: dict[str, str] | None = None) -> bytes:
    """Return an archive whose checksums are of other files than it has."""
    with tarfile.open(fileobj=io.BytesIO(pack(manifest or MANIFEST, FILES)), mode="r:gz") as tar:
        members = {member.name: stream.read() for member in tar if (stream := tar.extractfile(member))}
    change(members)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda members: members.pop("munge.key"), "munge.key: either listed but missing"),
        (lambda members: members.update(more=b""), "more: either listed but missing, or not listed"),
        (lambda members: members.update({"munge.key": b"other"}), "munge.key does not match its checksum"),
        (lambda members: members.pop("manifest.json"), "it cannot be read"),
        (lambda members: members.update({"manifest.json": b"[]"}), "it cannot be read"),
    ],
)
def test_an_archive_that_was_put_together_anew_is_refused(
    change: Callable[[dict[str, bytes]], object], said: str
) -> None:
    with pytest.raises(DamagedError, match=said):
        unpack(tampered(change))


@pytest.mark.parametrize("name", ["/etc/passwd", "state/../../etc/passwd"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(DamagedError, match="leads out of the archive"):
        unpack(pack(MANIFEST, {name: b""}))


@pytest.mark.parametrize("missing", backup_archive.NEEDED)
def test_a_manifest_that_says_too_little_is_refused(missing: str) -> None:
    manifest = {name: value for name, value in MANIFEST.items() if name != missing}

    with pytest.raises(DamagedError, match=f"lacks {missing}"):
        unpack(pack(manifest, FILES))
