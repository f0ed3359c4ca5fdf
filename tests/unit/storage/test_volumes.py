"""What LVM says is read, and what is wrong between that and what is declared is found."""

from __future__ import annotations

import json
import re

import pytest

from ansible.module_utils.slurmstead.storage import volumes
from ansible.module_utils.slurmstead.storage.disks import Disk, DiskError

MIB = 2**20
WANTED = volumes.Wanted("scratch", "scratch", "ext4", "/scratch", 0o711, ("nodev", "nosuid"))
XFS = volumes.Wanted("scratch", "scratch", "xfs", "/scratch", 0o711, ())
UNFINISHED = "6d1b0c6c-6f5c-4d3a-9f5e-1f2d3c4b5a69"


def row(**fields: str) -> dict[str, str]:
    """One segment in LVM's report, of a volume group of ours over one disk."""
    return {
        "pv_name": "/dev/sdb",
        "vg_name": "scratch",
        "vg_uuid": "lYpIAE-a6Nu-qOuM-dml0-PDFN-c5ec-Pth0fL",
        "vg_tags": "slurmstead",
        "vg_free_count": "0",
        "vg_missing_pv_count": "0",
        "lv_name": "scratch",
        "lv_tags": "slurmstead",
        "lv_size": "1069547520",
        **fields,
    }


def report(*rows: dict[str, str]) -> list[volumes.Group]:
    """The volume groups of a report."""
    groups: list[volumes.Group] = volumes.parse_report(json.dumps({"report": [{"pvseg": list(rows)}]}))
    return groups


def disk(number: str = "8:16", name: str = "/dev/disk/by-id/ata-A", size: int = 1024 * MIB, sector: int = 512) -> Disk:
    """A disk as it was measured."""
    return Disk(name, "/dev/sdb", number, size, sector, "A", "1")


def test_a_report_becomes_groups() -> None:
    orphan = row(pv_name="/dev/sdd", vg_name="", vg_uuid="", vg_tags="", lv_name="", lv_tags="", lv_size="0")
    second = row(pv_name="/dev/sdc")
    rest = row(pv_name="/dev/sdc", lv_name="", lv_tags="", lv_size="0")
    (group,) = report(row(), second, rest, orphan)
    assert (group.name, group.members, group.free, group.missing) == ("scratch", ("/dev/sdb", "/dev/sdc"), 0, 0)
    assert group.tags == {"slurmstead"}
    assert group.volumes == {"scratch": volumes.LogicalVolume(frozenset({"slurmstead"}), 1069547520)}


def test_a_report_without_groups_is_empty() -> None:
    assert report() == []


def test_a_missing_member_is_no_device() -> None:
    (group,) = report(row(), row(pv_name="[unknown]", vg_missing_pv_count="1"))
    assert group.members == ("/dev/sdb",)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"report": [{"pvseg": [{"pv_name": "/dev/sdb"}]}]}', "[]", '{"report": null}']
)
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(DiskError, match="expected the report of `lvm pvs`"):
        volumes.parse_report(text)


def test_the_mark_of_an_unfinished_volume_is_read() -> None:
    (group,) = report(row(lv_tags=f"slurmstead,slurmstead.unfinished={UNFINISHED}"))
    assert group.volumes["scratch"].unfinished == UNFINISHED


def test_a_finished_volume_has_no_mark() -> None:
    assert report(row())[0].volumes["scratch"].unfinished is None


def test_a_new_member_is_known_as_ours() -> None:
    first, second = volumes.new_member_id(), volumes.new_member_id()
    assert re.fullmatch(r"slurms-tead(-[A-Za-z0-9]{4}){4}-[A-Za-z0-9]{6}", first)
    assert first != second


def test_our_own_group_is_no_problem() -> None:
    assert volumes.group_problems(WANTED, report(row())) == []


def test_other_groups_are_no_problem() -> None:
    assert volumes.group_problems(WANTED, report(row(vg_name="pve", vg_tags=""))) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [row(vg_tags="")],
            "expected no volume group scratch, or one that Slurmstead made (tag slurmstead), found one without",
        ),
        ([row(), row(vg_uuid="other")], "expected one volume group scratch, found 2 of that name"),
        ([row(vg_missing_pv_count="1")], "expected all disks of the volume group scratch, 1 of them are missing"),
        ([row(lv_tags="mine")], "expected no logical volume scratch/scratch, or one that Slurmstead made"),
    ],
    ids=["untagged", "twice", "missing", "foreign-volume"],
)
def test_what_is_wrong_with_a_group_is_said(rows: list[dict[str, str]], message: str) -> None:
    (problem,) = volumes.group_problems(WANTED, report(*rows))
    assert message in problem


GROUP = report(row())[0]
OTHER = disk(number="8:32", name="/dev/disk/by-id/ata-B")


def test_declared_disks_that_are_members_are_no_problem() -> None:
    assert volumes.membership_problems(WANTED, GROUP, {"8:16": "/dev/sdb"}, [disk()]) == []


def test_a_further_disk_is_no_problem() -> None:
    assert volumes.membership_problems(WANTED, GROUP, {"8:16": "/dev/sdb"}, [disk(), OTHER]) == []


def test_a_member_that_is_not_declared_is_said() -> None:
    (problem,) = volumes.membership_problems(WANTED, GROUP, {"8:16": "/dev/sdb", "8:32": "/dev/sdc"}, [disk()])
    assert "it also has /dev/sdc: declare that disk again" in problem


def test_a_disk_declared_twice_is_said() -> None:
    (problem,) = volumes.membership_problems(WANTED, None, {}, [disk(), disk(name="/dev/disk/by-path/pci-1")])
    assert problem.startswith("/dev/disk/by-path/pci-1: expected each disk once, but /dev/disk/by-id/ata-A")


def test_sectors_of_two_sizes_are_said() -> None:
    (problem,) = volumes.membership_problems(
        WANTED, None, {}, [disk(), disk("8:32", "/dev/disk/by-id/ata-B", sector=4096)]
    )
    assert "expected disks with sectors of one size" in problem


@pytest.mark.parametrize(("wanted", "size"), [(WANTED, 63 * MIB), (XFS, 319 * MIB)])
def test_a_disk_that_is_too_small_is_said(wanted: volumes.Wanted, size: int) -> None:
    (problem,) = volumes.membership_problems(wanted, None, {}, [disk(size=size)])
    assert f"for {wanted.filesystem}" in problem
    assert volumes.membership_problems(wanted, None, {}, [disk(size=size + MIB)]) == []
