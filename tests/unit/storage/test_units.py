"""What systemd reads to mount a volume at boot."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import subprocess
from typing import Any

import pytest

from ansible.module_utils.slurmstead.storage import units
from ansible.module_utils.slurmstead.storage.volumes import Wanted

ROOT = pathlib.Path(__file__).resolve().parents[3]
WANTED = Wanted("scratch", "scratch", "ext4", "/scratch", 0o711, ("nodev", "nosuid"))
XFS = Wanted("scratch", "scratch", "xfs", "/scratch", 0o711, ())


NAMES = {
    "/": "-",
    "/scratch": "scratch",
    "//srv///share/": "srv-share",
    "/srv/my-share": r"srv-my\x2dshare",
    "/.hidden/.a.b": r"\x2ehidden-.a.b",
    "/srv/a+b@c/": r"srv-a\x2bb\x40c",
    "/srv/a_b.c:d": "srv-a_b.c:d",
    "/srv/a b,c#~": r"srv-a\x20b\x2cc\x23\x7e",
    "/srv/übung": r"srv-\xc3\xbcbung",
    "/dev/disk/by-id/nvme-a+b": r"dev-disk-by\x2did-nvme\x2da\x2bb",
}
"""What `systemd-escape --path` prints for a path (systemd 252, Debian 12)."""


@pytest.mark.parametrize(("path", "name"), NAMES.items())
def test_a_path_becomes_the_name_of_a_unit_as_systemd_writes_it(path: str, name: str) -> None:
    assert units.escape(path) == name
    # Where systemd is installed, the table above is proven too.
    if program := shutil.which("systemd-escape"):
        assert subprocess.check_output([program, "--path", path], text=True).strip() == name


def test_roles_and_disks_name_a_unit_alike() -> None:
    assert slurmstead_filters()["mount_unit"] is units.escape


def slurmstead_filters() -> dict[str, Any]:
    """The filters that playbooks have."""
    spec = importlib.util.spec_from_file_location("filters", ROOT / "plugins" / "filter" / "slurmstead.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    filters: dict[str, Any] = module.FilterModule().filters()
    return filters


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
