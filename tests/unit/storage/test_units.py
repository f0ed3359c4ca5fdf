"""What systemd reads to mount a volume at boot."""

from __future__ import annotations

import pytest

from ansible.module_utils.slurmstead.storage import units
from ansible.module_utils.slurmstead.storage.volumes import Wanted

WANTED = Wanted("scratch", "scratch", "ext4", "/scratch", 0o711, ("nodev", "nosuid"))
XFS = Wanted("scratch", "scratch", "xfs", "/scratch", 0o711, ())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/scratch", "scratch"),
        ("/srv/share", "srv-share"),
        ("/srv/my-share", r"srv-my\x2dshare"),
        ("/.hidden/a.b", r"\x2ehidden-a.b"),
        ("/srv//a+b@c/", r"srv-a\x2bb\x40c"),
        ("/", "-"),
    ],
)
def test_a_path_becomes_the_name_of_a_unit(path: str, name: str) -> None:
    assert units.escape(path) == name


def test_a_machine_boots_without_the_volume() -> None:
    files = units.unit_files(WANTED)
    unit = files["scratch.mount"]
    assert "What=/dev/scratch/scratch\nWhere=/scratch\nType=ext4\nOptions=nodev,nosuid\n" in unit
    assert "WantedBy=local-fs.target" in unit
    assert "RequiredBy" not in unit
    assert "JobRunningTimeoutSec=" in files["dev-scratch-scratch.device.d/slurmstead.conf"]
    assert "Wants=scratch.mount" in files["dev-scratch-scratch.device.d/slurmstead.conf"]


def test_only_ext4_is_checked_at_boot() -> None:
    assert "Requires=systemd-fsck@dev-scratch-scratch.service" in units.unit_files(WANTED)["scratch.mount"]
    assert "fsck" not in units.unit_files(XFS)["scratch.mount"]
